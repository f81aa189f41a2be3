#include "io/formats.h"

#include <algorithm>
#include <filesystem>
#include <stdexcept>
#include <tuple>

#include <fmt/format.h>

#include "base/strings.h"

namespace cytra::io {
namespace {

std::vector<Format>& known_formats() {
  static std::vector<Format> formats;
  return formats;
}

/// The longest ending of a format that a name in small letters has; "" for none.
std::string ending_in(const Format& format, const std::string& name) {
  std::string longest;
  for (const std::string& ending : format.endings) {
    if (name.size() > ending.size() && name.ends_with(ending) && ending.size() > longest.size())
      longest = ending;
  }
  return longest;
}

/// The format of a name, and its ending there.
std::pair<const Format*, std::string> find_ending(const std::string& given) {
  const std::string name = in_small_letters(given);
  std::pair<const Format*, std::string> found{nullptr, ""};
  for (const Format& format : formats()) {
    const std::string ending = ending_in(format, name);
    if (ending.size() > found.second.size()) found = {&format, ending};
  }
  return found;
}

/// The names in words: "a, b or c".
std::string in_words(const std::vector<std::string>& names, const char* last) {
  if (names.size() < 2) return join(names, "");
  return fmt::format("{} {} {}", join({names.begin(), names.end() - 1}, ", "), last, names.back());
}

}  // namespace

bool add_format(const char* name, void (*describe)(Format& format)) {
  Format added;
  added.name = name;
  describe(added);
  const bool is_written = added.create != nullptr;
  if (added.written_as.empty()) added.written_as = is_written ? name : "ome_tiff";
  if (is_written && added.output_ending.empty()) added.output_ending = added.written_endings.at(0);
  std::vector<Format>& all = known_formats();
  for (const Format& other : all) {
    if (other.name == added.name) throw std::logic_error("two formats are named " + added.name);
    for (const std::string& ending : added.endings) {
      if (contains(other.endings, ending))
        throw std::logic_error("two formats have file names that end in " + ending);
    }
  }
  const auto place = std::ranges::find_if(all, [&](const Format& other) {
    return std::tie(added.rank, added.name) < std::tie(other.rank, other.name);
  });
  all.insert(place, std::move(added));
  return true;
}

const std::vector<Format>& formats() {
  return known_formats();
}

const Format* find_format(const std::string& name) {
  const std::vector<Format>& all = formats();
  const auto found = std::ranges::find_if(all, [&](const Format& one) { return one.name == name; });
  return found == all.end() ? nullptr : &*found;
}

const Format* format_of_name(const std::string& name) {
  return find_ending(name).first;
}

std::vector<std::string> output_choices() {
  std::vector<std::string> names{"auto"};
  for (const Format& format : formats()) {
    if (format.create != nullptr) names.push_back(format.name);
  }
  return names;
}

std::string output_names(bool (*wanted)(const Format& format)) {
  std::vector<std::string> names;
  for (const Format& format : formats()) {
    if (format.create != nullptr && wanted(format)) names.push_back(format.name);
  }
  return in_words(names, "or");
}

std::string format_titles(const char* last, bool (*wanted)(const Format& format)) {
  std::vector<std::string> titles;
  for (const Format& format : formats()) {
    if (wanted(format)) titles.push_back(format.title);
  }
  return in_words(titles, last);
}

std::string stem_of(const std::string& path) {
  const std::string file = file_of(path);
  std::filesystem::path last = std::filesystem::path(file).lexically_normal();
  if (!last.has_filename()) last = last.parent_path();  // "in/series/"
  std::string stem = last.filename().string();
  stem.resize(stem.size() - find_ending(stem).second.size());
  std::string within = path.substr(file.size());  // of an archive
  std::ranges::replace(within, '/', '_');
  return stem + within;
}

}  // namespace cytra::io
