#pragma once
#include <string>
#include <vector>

namespace cytra {

/// The rows as lines with columns two spaces apart, all to the left.
std::vector<std::string> aligned(const std::vector<std::vector<std::string>>& rows);
/// Formats rows as columns two spaces apart: the first to the left, the others to the right. The
/// first row is the heading, underlined.
std::string format_table(const std::vector<std::vector<std::string>>& rows);

}  // namespace cytra
