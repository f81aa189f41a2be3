#pragma once
#include <optional>
#include <string>

#include "data/layout.h"

namespace cytra::data {

/// layout_of() of a table; `is_whole`: of all splits.
std::optional<Layout> layout_of_table(const std::string& file,
                                      bool is_whole,
                                      const LayoutWish& wish);

}  // namespace cytra::data
