#include "base/table.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/escape.h"

namespace cytra {

namespace {

std::vector<std::size_t> widths_of(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  }
  return widths;
}

}  // namespace

std::vector<std::string> aligned(const std::vector<std::vector<std::string>>& rows) {
  const std::vector<std::size_t> widths = widths_of(rows);
  std::vector<std::string> lines;
  for (const auto& row : rows) {
    std::string& line = lines.emplace_back();
    for (std::size_t c = 0; c < row.size(); ++c) line += fmt::format("{:<{}}  ", row[c], widths[c]);
    line.erase(line.find_last_not_of(' ') + 1);
  }
  return lines;
}

std::string format_table(const std::vector<std::vector<std::string>>& given) {
  std::vector<std::vector<std::string>> rows = given;
  for (auto& row : rows) std::transform(row.begin(), row.end(), row.begin(), escaped);
  const std::vector<std::size_t> widths = widths_of(rows);
  std::string text;
  const auto add = [&](const std::vector<std::string>& row) {
    for (std::size_t c = 0; c < row.size(); ++c)
      text += c == 0 ? fmt::format("{:<{}}", row[c], widths[c])
                     : fmt::format("  {:>{}}", row[c], widths[c]);
    text += '\n';
  };
  for (const auto& row : rows) {
    add(row);
    if (&row != &rows.front()) continue;
    std::vector<std::string> rules;
    for (const std::size_t width : widths) rules.emplace_back(width, '-');
    add(rules);
  }
  return text;
}

}  // namespace cytra
