#pragma once
#include <exception>
#include <string>

namespace cytra::nn {

/// The message of torch in one line, without places in its sources.
std::string brief(const std::exception& error);

}  // namespace cytra::nn
