#include "data/layout/layout_table.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/error.h"
#include "base/escape.h"
#include "base/strings.h"
#include "config/overrides/overrides.h"
#include "data/layout/layout_names.h"
#include "data/manifest.h"
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
      if (io::is_image_path(path_in_table(table.path, row[column])) ||
          io::is_annotation_path(row[column]))
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

/// The experiment that learns a column, with its words: numbers of many values, or words and
/// numbers of classes that come again. "": neither, as names are.
std::string experiment_of(const io::Table& table, std::size_t column, Layout& layout) {
  constexpr std::size_t kMostClasses = 20;
  std::set<std::string> cells;
  std::set<double> numbers;
  for (const std::vector<std::string>& row : table.rows) {
    double number = 0;
    cells.insert(trim(row[column]));
    if (io::read_number(trim(row[column]), number)) numbers.insert(number);
  }
  const bool are_numbers = numbers.size() == cells.size();
  if (cells.size() < 2 || cells.count("") > 0) return "";
  const bool come_again = 2 * cells.size() <= table.rows.size() && cells.size() <= kMostClasses;
  layout.settings = {{"target_col", {table.columns[column]}}};
  if (are_numbers) {
    const bool are_classes = come_again && *numbers.begin() == 0 &&
                             *numbers.rbegin() + 1 == static_cast<double>(numbers.size());
    const bool is_index =
        numbers.size() == table.rows.size() && *numbers.begin() <= 1 &&
        *numbers.rbegin() - *numbers.begin() + 1 == static_cast<double>(numbers.size());
    if (!are_classes) return is_index ? "" : "im2im/regression_scalar";
    layout.settings.push_back({"num_classes", {std::to_string(numbers.size())}});
    return "im2im/classification";
  }
  if (!come_again || !numbers.empty()) return "";
  layout.settings.push_back({"class_names", {cells.begin(), cells.end()}});
  return "im2im/classification";
}

/// Takes the one column that a whole image's class or number may be in. Throws: ConfigError with
/// what to type for several.
void take_image_target(const io::Table& table,
                       const std::string& source,
                       const std::string& split,
                       Layout& layout) {
  std::vector<std::string> choices;
  Layout found;
  for (std::size_t column = 0; column < table.columns.size(); ++column) {
    const std::string& name = table.columns[column];
    const std::string small = in_small_letters(name);
    const bool is_number = small.empty() || small.ends_with("id") || small.ends_with("index") ||
                           small.starts_with("unnamed");  // a row's, as pandas writes it
    if (is_number || name == source || name == split) continue;
    Layout one;
    one.experiment = experiment_of(table, column, one);
    if (one.experiment.empty()) continue;
    choices.push_back("experiment=" + one.experiment + " target_col=" +
                      shell_quote(config::override_text(config::Node::make_string(name))));
    found = std::move(one);
  }
  if (choices.size() > 1) {
    throw ConfigError("{}: no column of masks, but several of classes or numbers; type {}",
                      table.path,
                      join(choices, ", or "));
  }
  layout.experiment = found.experiment;
  layout.settings.insert(layout.settings.end(), found.settings.begin(), found.settings.end());
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
  for (const std::string& name : table.columns) {
    if (in_small_letters(name) != "encodedpixels") continue;
    throw ConfigError(
        "{}: the column '{}' has run lengths of masks, which are read from COCO's JSON alone "
        "(segmentation: {{counts, size}}); write them as that, or as images",
        file,
        name);
  }
  const auto has = [&](const std::string& name) { return contains(table.columns, name); };
  const std::string target =
      !needs.has_target || has(needs.target_col) ? needs.target_col : std::string();
  const std::string column = is_whole ? split_column_of(table) : std::string();
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
    if (found.empty() && needs.is_any_task && !source.empty())
      take_image_target(table, source, column, layout);
  }
  constexpr std::size_t kLeastRows = 5;
  if (!column.empty()) {
    layout.settings.push_back({"data.split_column", {column}});
  } else if (is_whole && table.rows.size() >= kLeastRows) {
    layout.settings.push_back({"data.folds", {"5"}});
  }
  layout.text = "the columns of " + file;
  if (layout.settings.empty()) return {};
  return layout;
}

}  // namespace cytra::data
