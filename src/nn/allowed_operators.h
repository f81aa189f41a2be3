#pragma once
#include <string_view>

namespace cytra::nn {

/// Whether a foreign model may call an operator ("aten", "relu"). Operators that are not in the
/// list are not allowed.
bool is_allowed_operator(std::string_view library, std::string_view name);

}  // namespace cytra::nn
