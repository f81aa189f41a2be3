#pragma once
#include <optional>
#include <string>

#include "data/layout.h"

namespace cytra::data {

/// The layout of a table, as by layout_of(); `is_whole`: the table is of all splits.
std::optional<Layout> layout_of_table(const std::string& file,
                                      bool is_whole,
                                      const LayoutWish& wish);

}  // namespace cytra::data
