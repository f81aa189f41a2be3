#pragma once
// A report, as its readers want it. It holds `inference` and `training`, each a map from the batch
// size to rows (rows.h).
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "config/node.h"

namespace cytra::app {

/// Each row of a report in its order. `section`: "inference" or "training".
using EachRow = std::function<void(const std::string& section,
                                   const std::string& batch,
                                   const std::string& option,
                                   config::Node& row)>;
void each_row(config::Node& report, const EachRow& look);

/// Where the median of a row's times lies, in ms; of few runs, where all of them lie. Rows whose
/// ranges lie apart differ by more than the noise.
std::pair<double, double> range_of(const config::Node& row);

/// What each column of a row is, and what it holds; "" where there is nothing.
std::vector<std::string> headings();
std::vector<std::string> cells_of(const config::Node& row);

/// For a terminal.
std::string table_of(config::Node report);

}  // namespace cytra::app
