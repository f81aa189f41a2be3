#include "data/manifest.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include <fmt/format.h>

#include "base/data_errors.h"
#include "base/escape.h"
#include "base/files.h"
#include "base/log.h"
#include "base/strings.h"
#include "base/unicode.h"
#include "data/datamodule.h"
#include "io/annotations/annotations.h"
#include "io/reader.h"

namespace cytra::data {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kMostProblems = 20;
constexpr int64_t kMostImages = 1000000;  // of one row

/// The number in a cell: 3 for "3", "3.0" (as pandas writes a column with gaps) and bioio's
/// "Image:3"; -1 for others.
int64_t whole_number(std::string text) {
  if (text.starts_with("Image:")) text.erase(0, 6);
  if (text.empty() || text.find_first_not_of("0123456789.") != std::string::npos) return -1;
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  const bool is_whole = *end == '\0' && value == std::floor(value) && value < 1e12;
  return is_whole ? static_cast<int64_t>(value) : -1;
}

}  // namespace

std::string path_in_table(const std::string& table, const std::string& cell) {
  const fs::path folder = fs::path(table).parent_path();
  const std::string path = (folder / cell).string();
  if (is_there(path)) return path;
  std::string stored = path_as_stored(path);
  if (is_there(stored) || cell.find('\\') == std::string::npos) return stored;
  std::string end = cell;
  std::ranges::replace(end, '\\', '/');
  const bool is_whole = end.starts_with("//") || (end.size() > 1 && end[1] == ':');
  while (!end.empty()) {
    std::string there = end[0] == '/' ? "" : path_as_stored((folder / end).string());
    if (!there.empty() && is_there(there)) return there;
    const std::size_t slash = end.find('/');
    if (!is_whole || slash == std::string::npos) break;
    end.erase(0, slash + 1);
  }
  return stored;
}

bool is_empty_cell(const std::string& cell) {
  for (const char* word : {"", "nan", "NaN", "NA", "N/A", "<NA>", "null", "NULL", "None"}) {
    if (cell == word) return true;
  }
  return false;
}

Manifest::Manifest(const std::string& path,
                   const std::vector<std::string>& columns,
                   const std::string& weight_column,
                   bool leave_out,
                   const std::string& axes,
                   bool allow_empty)
    : table_(io::read_table(path)),
      leave_out_(leave_out),
      allow_empty_(allow_empty),
      axes_(axes),
      weight_(kNone) {
  if (!weight_column.empty()) weight_ = table_.column(weight_column);
  std::vector<std::string> names = columns;
  if (columns.empty()) {
    std::ranges::copy_if(table_.columns, std::back_inserter(names), [](const std::string& name) {
      return !name.empty();
    });
  }
  for (const std::string& name : names) {
    const std::size_t index = table_.column(name);
    if (!holds_images(index, /*when_empty=*/!columns.empty())) {
      texts_.push_back(index);
    } else {
      images_.push_back({name, index, selectors_of(name)});
    }
  }
  if (!images_.empty() || rows() == 0) return;
  throw DataError("{}: no images: column '{}' begins with '{}', expected paths of files",
                  path,
                  names.front(),
                  printable(cell(0, table_.column(names.front())), 80));
}

std::string Manifest::place(std::size_t row, std::size_t column) const {
  return fmt::format(
      "{}:{}: column '{}'", table_.path, table_.lines[row], printable(table_.columns[column]));
}

std::size_t Manifest::optional_column(const std::string& name) const {
  const auto found = std::ranges::find(table_.columns, name);
  return found == table_.columns.end() ? kNone
                                       : static_cast<std::size_t>(found - table_.columns.begin());
}

bool Manifest::holds_images(std::size_t column, bool when_empty) const {
  for (std::size_t row = 0; row < rows(); ++row) {
    if (is_empty_cell(cell(row, column))) continue;
    const std::string path = path_in_table(table_.path, cell(row, column));
    return io::is_image_path(path) || file_exists(io::file_of(path)) ||
           (when_empty && io::is_mask_folder(path));
  }
  return when_empty;  // an empty column is reported for its first row
}

Manifest::Selectors Manifest::selectors_of(const std::string& image_column) const {
  const auto find = [&](const std::string& name) {
    const std::size_t own = optional_column(image_column + "_" + name);
    return own != kNone ? own : optional_column(name);
  };
  return {find("channel"),
          find("scene"),
          find("resolution"),
          find("timepoint"),
          find("start"),
          find("stop"),
          find("step")};
}

std::vector<int64_t> Manifest::numbers(std::size_t row, std::size_t column) const {
  std::vector<int64_t> result;
  if (column == kNone || trim(cell(row, column)).empty()) return result;
  for (const std::string& part : split(cell(row, column), ',')) {
    result.push_back(whole_number(trim(part)));
    if (result.back() < 0) {
      throw DataError("{} is '{}', expected a number from 0, or several as in 0,2",
                      place(row, column),
                      printable(cell(row, column)));
    }
  }
  return result;
}

int64_t Manifest::number(std::size_t row, std::size_t column, int64_t otherwise) const {
  if (column == kNone || trim(cell(row, column)) == "-1") return otherwise;
  const std::vector<int64_t> values = numbers(row, column);
  if (values.size() > 1) {
    throw DataError(
        "{} is '{}', expected one number", place(row, column), printable(cell(row, column)));
  }
  return values.empty() ? otherwise : values[0];
}

std::vector<int64_t> Manifest::timepoints(std::size_t row,
                                          const Selectors& selectors,
                                          const std::string& path,
                                          const io::Selection& selection) const {
  const std::vector<int64_t> listed = numbers(row, selectors.timepoint);
  const auto is_given = [&](std::size_t column) {
    return column != kNone && !trim(cell(row, column)).empty();
  };
  if (!listed.empty()) return listed;
  if (!is_given(selectors.start) && !is_given(selectors.stop) && !is_given(selectors.step))
    return {-1};
  const int64_t step = number(row, selectors.step, 1);
  if (step == 0) throw DataError(place(row, selectors.step) + " is 0, expected at least 1");
  const int64_t start = number(row, selectors.start, 0);
  int64_t stop = number(row, selectors.stop, -1);
  const bool is_of_file = stop < 0;
  if (is_of_file) {
    io::Selection first = selection;
    first.timepoint = 0;
    stop = io::open_image(path, first)->info().timepoints - 1;
  }
  const std::size_t blamed = selectors.start != kNone  ? selectors.start
                             : selectors.stop != kNone ? selectors.stop
                                                       : selectors.step;
  if (start > stop) {
    throw DataError("{}: time points {} to {}{}: there are no such time points",
                    place(row, blamed),
                    start,
                    stop,
                    is_of_file ? ", the file's last" : "");
  }
  if ((stop - start) / step >= kMostImages) {
    throw DataError("{}: time points {} to {}, expected {} at most in one row",
                    place(row, blamed),
                    start,
                    stop,
                    kMostImages);
  }
  std::vector<int64_t> result;
  for (int64_t time = start; time <= stop; time += step) result.push_back(time);
  return result;
}

std::vector<Source> Manifest::sources(std::size_t row, const ImageColumn& column) const {
  const std::string& text = cell(row, column.index);
  if (is_empty_cell(text)) {
    if (allow_empty_) return {};
    throw DataError(place(row, column.index) + " is empty");
  }
  Source source;
  source.path = path_in_table(table_.path, text);
  if (!is_there(source.path)) {
    throw DataError(
        "{}: {}: {}{}",
        place(row, column.index),
        path_exists(source.path) ? "a pipe, socket or device, expected an image" : "no such image",
        printable(source.path, 300),
        text.find('\\') == std::string::npos
            ? ""
            : ", nor is any end of this path below the table's folder");
  }
  const Selectors& selectors = column.selectors;
  source.selection.axes = axes_;
  source.selection.channels = numbers(row, selectors.channel);
  source.selection.level = number(row, selectors.level, 0);
  source.has_level = !numbers(row, selectors.level).empty();
  std::vector<int64_t> scenes = numbers(row, selectors.scene);
  if (scenes.empty()) scenes = {-1};  // not chosen
  std::vector<Source> result;
  for (const int64_t scene : scenes) {
    source.selection.scene = scene;
    for (const int64_t time : timepoints(row, selectors, source.path, source.selection)) {
      result.push_back(source);
      result.back().selection.timepoint = time;
    }
  }
  return result;
}

void Manifest::add_row(std::size_t row, std::vector<Sample>& samples) const {
  Sample sample;
  for (const std::size_t column : texts_)
    sample.columns[table_.columns[column]] = cell(row, column);
  if (weight_ != kNone) {
    const std::string text = trim(cell(row, weight_));
    if (!io::read_number(text, sample.weight) || !std::isfinite(sample.weight) ||
        sample.weight < 0) {
      throw DataError("{} is '{}', expected a weight of at least 0", place(row, weight_), text);
    }
  }
  std::vector<std::vector<Source>> by_column;
  std::size_t count = 0;
  for (const ImageColumn& column : images_) {
    by_column.push_back(sources(row, column));
    count = std::max(count, by_column.back().size());
  }
  if (count == 0)
    throw DataError(place(row, images_[0].index) +
                    " is empty, like all cells of images in this row");
  for (std::size_t c = 0; c < images_.size(); ++c) {
    if (by_column[c].size() <= 1 || by_column[c].size() == count) continue;
    throw DataError("{} gives {} images, another column of the row {}",
                    place(row, images_[c].index),
                    by_column[c].size(),
                    count);
  }
  for (std::size_t i = 0; i < count; ++i) {
    Sample& added = samples.emplace_back(sample);
    for (std::size_t c = 0; c < images_.size(); ++c) {
      if (by_column[c].empty()) {
        added.columns[images_[c].name] = cell(row, images_[c].index);
        continue;
      }
      const Source& source = by_column[c][by_column[c].size() == 1 ? 0 : i];
      if (added.id.empty()) added.id = source.path;
      added.sources[images_[c].name] = source;
    }
  }
}

std::vector<Sample> Manifest::samples(const std::vector<std::size_t>& rows) const {
  std::vector<Sample> result;
  std::string problems;
  std::size_t count = 0;
  for (const std::size_t row : rows) {
    try {
      add_row(row, result);
    } catch (const DataError& error) {
      ++count;
      if (count <= kMostProblems) problems += (count == 1 ? "" : "\n") + escaped(error.what());
    }
  }
  if (count > kMostProblems) problems += fmt::format("\nand {} rows more", count - kMostProblems);
  if (count > 0 && (!leave_out_ || result.empty())) throw DataErrors(problems);
  if (count > 0) log::warn("{} rows are left out:\n{}", count, problems);
  return result;
}

std::vector<Sample> Manifest::samples() const {
  std::vector<std::size_t> all(rows());
  for (std::size_t row = 0; row < all.size(); ++row) all[row] = row;
  if (all.empty()) throw ConfigError(table_.path + ": no rows below the header");
  return samples(all);
}

}  // namespace cytra::data
