// Part of io/reader.h: the user's axes of a file, and the file's own.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/strings.h"
#include "io/pixels/format.h"

namespace cytra::io {

void check_axes(const std::string& axes) {
  const std::string planes = axes.substr(0, axes.size() - std::min<std::size_t>(axes.size(), 2));
  bool is_right = axes.ends_with("YX");
  for (const char name : planes)
    is_right = is_right && std::string_view("TCZ").find(name) != std::string_view::npos &&
               std::ranges::count(planes, name) == 1;
  if (is_right) return;
  throw ConfigError("axes: '" + printable(axes, 20) +
                    "', expected those of the file, the slowest first: T, C and Z at most once "
                    "each, then YX, such as TYX or TZCYX");
}

std::string plane_axes(const std::string& path,
                       const std::string& axes,
                       const std::string& own,
                       const std::vector<int64_t>& sizes) {
  if (axes.empty()) return own;
  check_axes(axes);
  const std::string names = axes.substr(0, axes.size() - 2);
  if (names.size() == sizes.size()) return names;
  // Axes of size 1 may be left out; for an image of one plane, all may be named.
  const auto ones = static_cast<std::size_t>(std::ranges::count(sizes, 1));
  std::string result(sizes.size(), '-');
  if (ones == sizes.size()) return result;
  if (sizes.size() - ones != names.size()) {
    std::vector<std::string> found;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if (sizes[i] != 1) found.push_back(fmt::format("{} {}", own[i], sizes[i]));
    }
    throw DataError(
        "{}: axes: {} names {} in front of YX, the file has {} ({} as it is read without); name "
        "each",
        path,
        axes,
        names.empty() ? "none" : fmt::format("{}", names.size()),
        found.size(),
        fmt::join(found, ", "));
  }
  auto name = names.begin();
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] != 1) result[i] = *name++;
  }
  return result;
}

std::string array_axes(const std::string& path,
                       const std::string& axes,
                       const std::vector<int64_t>& shape) {
  const std::string own = std::string("TCZYX").substr(5 - shape.size());
  return plane_axes(path, axes, own.substr(0, own.size() - 2), {shape.begin(), shape.end() - 2}) +
         "YX";
}

}  // namespace cytra::io
