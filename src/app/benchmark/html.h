#pragma once
// A benchmark's report as an HTML page.
#include <string>

#include "config/node.h"

namespace cytra::app {

/// The report as a page that needs no other file and no network: bars, lines by batch size, the
/// roofline.
std::string html_of(config::Node report);

}  // namespace cytra::app
