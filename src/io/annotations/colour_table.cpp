#include "io/annotations/colour_table.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "base/error.h"
#include "base/strings.h"
#include "io/csv.h"
#include "io/image_folder.h"
#include "io/input_file.h"

namespace cytra::io {
namespace fs = std::filesystem;
namespace {

using Class = ColourTable::Class;
constexpr uint64_t kMostTableBytes = 1 << 20;
constexpr std::size_t kMostClasses = 256;

/// The number 0 to 255 in a text.
std::optional<int> byte_of(const std::string& text) {
  const std::string word = trim(text);
  int value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size() || value < 0 || value > 255)
    return {};
  return value;
}

/// The colour "#ff0000" for 255, 0 and 0; "" where they are no colour.
std::string colour_of(const std::vector<std::string>& rgb) {
  if (rgb.size() != 3) return "";
  std::string colour = "#";
  for (const std::string& one : rgb) {
    const std::optional<int> value = byte_of(one);
    if (!value) return "";
    colour += fmt::format("{:02x}", *value);
  }
  return colour;
}

/// The colour of "#FF0000", as it is written here.
std::string colour_in_hex(const std::string& text) {
  const std::string colour = in_small_letters(trim(text));
  const bool is_one = colour.size() == 7 && colour[0] == '#' &&
                      colour.find_first_not_of("0123456789abcdef", 1) == std::string::npos;
  return is_one ? colour : "";
}

std::vector<Class> classes_of_table(const std::string& path) {
  const Table table = read_table(path);
  const auto column = [&](std::initializer_list<const char*> names) {
    for (std::size_t i = 0; i < table.columns.size(); ++i)
      for (const char* name : names)
        if (in_small_letters(trim(table.columns[i])) == name) return i;
    return table.columns.size();
  };
  const std::size_t none = table.columns.size();
  const std::size_t name = column({"name", "class", "class_name", "label"});
  const std::size_t rgb[] = {column({"r", "red"}), column({"g", "green"}), column({"b", "blue"})};
  const std::size_t hex = column({"colour", "color", "hex", "rgb"});
  const bool has_rgb = *std::max_element(std::begin(rgb), std::end(rgb)) < none;
  std::vector<Class> classes;
  if (name == none || (!has_rgb && hex == none)) return classes;
  for (const std::vector<std::string>& row : table.rows) {
    classes.push_back(
        {trim(row[name]),
         has_rgb ? colour_of({row[rgb[0]], row[rgb[1]], row[rgb[2]]}) : colour_in_hex(row[hex])});
  }
  return classes;
}

std::vector<Class> classes_of_lines(const std::string& path) {
  std::vector<Class> classes;
  for (const std::string& line : split(read_text_input(path, kMostTableBytes), '\n')) {
    const std::string text = trim(line);
    if (text.empty() || text[0] == '#') continue;
    const std::vector<std::string> parts = split(text, ':');
    if (parts.size() > 1) {
      classes.push_back({trim(parts[0]), colour_of(split(parts[1], ','))});
      continue;
    }
    std::vector<std::string> words;
    std::size_t at = 0;
    while (words.size() < 3 && at < text.size()) {
      const std::size_t end = std::min(text.find_first_of(" \t,", at), text.size());
      words.push_back(text.substr(at, end - at));
      at = std::min(text.find_first_not_of(" \t,", end), text.size());
    }
    classes.push_back({text.substr(at), colour_of(words)});
  }
  return classes;
}

/// Puts the background first; false where there is none.
bool lead_with_background(std::vector<Class>& classes) {
  const auto by_name = [](const Class& one) {
    const std::string name = in_small_letters(one.name);
    for (const char* known :
         {"background", "_background_", "bg", "void", "unlabelled", "unlabeled", "none"})
      if (name == known) return true;
    return false;
  };
  auto found = std::ranges::find_if(classes, by_name);
  if (found == classes.end()) {
    found = std::ranges::find_if(classes, [](const Class& one) { return one.colour == "#000000"; });
  }
  if (found == classes.end()) return false;
  std::rotate(classes.begin(), found, found + 1);
  return true;
}

}  // namespace

std::optional<ColourTable> read_colour_table(const std::string& path) {
  const std::string ending = in_small_letters(fs::path(path).extension().string());
  ColourTable table;
  std::error_code error;
  if (!fs::is_regular_file(path, error) || fs::file_size(path, error) > kMostTableBytes) return {};
  try {
    if (ending == ".txt") table.classes = classes_of_lines(path);
    if (ending == ".csv" || ending == ".tsv") table.classes = classes_of_table(path);
  } catch (const Error&) {  // some other table
    return {};
  }
  std::set<std::string> names, colours;
  for (const Class& one : table.classes) {
    if (one.name.empty() || one.colour.empty()) return {};
    if (!names.insert(one.name).second || !colours.insert(one.colour).second) return {};
  }
  const std::size_t count = table.classes.size();
  if (count < 2 || count > kMostClasses || !lead_with_background(table.classes)) return {};
  return table;
}

std::optional<ColourTable> find_colour_table(const std::string& folder) {
  std::optional<ColourTable> found;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (is_hidden(entry.path().filename().string())) continue;
    std::optional<ColourTable> table = read_colour_table(entry.path().string());
    if (table && found) return {};
    if (table) found = std::move(table);
  }
  return found;
}

}  // namespace cytra::io
