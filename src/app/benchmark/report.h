#pragma once
// Formats a report for its readers. A report holds `inference` and `training`, each a map from the
// batch size to rows (rows.h).
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "config/node.h"

namespace cytra::app {

/// Visits each row of a report, in order. `section`: "inference" or "training".
using EachRow = std::function<void(const std::string& section,
                                   const std::string& batch,
                                   const std::string& option,
                                   config::Node& row)>;
void each_row(config::Node& report, const EachRow& look);

/// The interval of the median of a row's times, in ms; of few runs, the range of all times. Rows
/// whose ranges do not overlap differ by more than the noise.
std::pair<double, double> range_of(const config::Node& row);

/// The titles of the columns, and the cells of a row, "" where it has nothing.
std::vector<std::string> headings();
std::vector<std::string> cells_of(const config::Node& row);

/// The report as a table for a terminal.
std::string table_of(config::Node report);

/// The report as a page that needs no other file and no network: bars, lines by batch size, the
/// roofline.
std::string html_of(config::Node report);

}  // namespace cytra::app
