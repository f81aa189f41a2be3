#include "data/layout/layout_table.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "base/error.h"
#include "base/strings.h"
#include "data/layout/layout_names.h"
#include "io/annotations/annotations.h"
#include "io/reader.h"

namespace cytra::data {
namespace {

/// The columns whose first cell that is not empty names an image, or annotations.
std::vector<std::string> image_columns(const io::Table& table) {
  std::vector<std::string> names;
  for (std::size_t column = 0; column < table.columns.size(); ++column) {
    for (const std::vector<std::string>& row : table.rows) {
      if (row[column].empty()) continue;
      const std::filesystem::path path =
          std::filesystem::path(table.path).parent_path() / row[column];
      if (io::is_image_path(path.string()) || io::is_annotation_path(row[column]))
        names.push_back(table.columns[column]);
      break;
    }
  }
  return names;
}

std::string column_of(const std::vector<std::string>& columns,
                      const std::string& wanted,
                      const std::string& taken,
                      bool (*names)(const std::string&),
                      const char* option,
                      const std::string& file) {
  std::vector<std::string> known, others;
  for (const std::string& name : columns) {
    if (name == wanted) return name;
    if (name == taken) continue;
    others.push_back(name);
    if (names(name)) known.push_back(name);
  }
  if (known.size() == 1) return known[0];
  if (others.size() == 1) return others[0];
  if (others.empty()) return "";
  if (!known.empty()) others = known;
  std::vector<std::string> lines;
  for (const std::string& name : others) lines.push_back(fmt::format("{}={}", option, name));
  throw ConfigError(
      "{}: no column '{}', but several may be meant; type {}", file, wanted, join(lines, ", or "));
}

}  // namespace

std::string split_column_of(const io::Table& table, std::size_t least) {
  for (std::size_t column = 0; column < table.columns.size(); ++column) {
    std::set<std::string> words;
    for (const std::vector<std::string>& row : table.rows) words.insert(row[column]);
    if (words.size() < least || words.size() > 3 || words.count("predict") > 0) continue;
    if (std::ranges::all_of(words, [](const std::string& word) {
          return word == in_small_letters(word) && names_split(word);
        }))
      return table.columns[column];
  }
  return "";
}

std::optional<Layout> layout_of_table(const std::string& file,
                                      bool is_whole,
                                      const DataNeeds& needs) {
  const io::Table table = io::read_table(file);
  const std::vector<std::string> columns = image_columns(table);
  Layout layout;
  const auto has = [&](const std::string& name) {
    return std::ranges::find(table.columns, name) != table.columns.end();
  };
  const std::string target =
      !needs.has_target || has(needs.target_col) ? needs.target_col : std::string();
  std::string source = needs.source_col;
  if (!has(source)) {
    std::vector<std::string> open = columns;
    std::erase_if(
        open, [&](const std::string& name) { return columns.size() > 1 && names_target(name); });
    source = column_of(open, source, target, names_source, "source_col", file);
    if (!source.empty()) layout.settings.push_back({"source_col", {source}});
  }
  if (needs.has_target && target.empty()) {
    const std::string found = column_of(
        columns,
        needs.target_col,
        source,
        [](const std::string& name) { return names_target(name); },
        "target_col",
        file);
    if (!found.empty()) layout.settings.push_back({"target_col", {found}});
  }
  if (is_whole) {
    const std::string column = split_column_of(table);
    if (!column.empty()) layout.settings.push_back({"data.split_column", {column}});
  }
  layout.text = "the columns of " + file;
  if (layout.settings.empty()) return {};
  return layout;
}

}  // namespace cytra::data
