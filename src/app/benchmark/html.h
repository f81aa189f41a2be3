#pragma once
// A report as a page.
#include <string>

#include "config/node.h"

namespace cytra::app {

/// A page that needs no other file and no network: bars, lines by batch size, the roofline.
std::string html_of(config::Node report);

}  // namespace cytra::app
