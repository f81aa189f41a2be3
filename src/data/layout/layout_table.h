#pragma once
#include <optional>
#include <string>

#include "data/layout/layout.h"
#include "io/csv.h"

namespace cytra::data {

/// The layout of a table, as by layout_of(); `is_whole`: the table is of all splits.
std::optional<Layout> layout_of_table(const std::string& file,
                                      bool is_whole,
                                      const DataNeeds& needs);

/// The column that says train, valid or test for each row, at least `least` of these words in the
/// whole table; "" where there is none.
std::string split_column_of(const io::Table& table, std::size_t least = 2);

}  // namespace cytra::data
