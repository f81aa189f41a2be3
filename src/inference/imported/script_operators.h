#pragma once
#include <string_view>

namespace cytra::inference {

/// "aten", "relu": whether a model of others may call it. A list: what is not on it is not allowed.
bool is_allowed_operator(std::string_view library, std::string_view name);

}  // namespace cytra::inference
