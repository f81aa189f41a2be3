// Part of io/pixels/raw_voxels.h: text headers: names of files, numbers, the place of the image.
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "base/error.h"
#include "base/strings.h"
#include "io/input_file.h"
#include "io/pixels/raw_voxels.h"

namespace cytra::io {
namespace {

namespace fs = std::filesystem;

std::string folder_of(const std::string& header) {
  const fs::path folder = fs::path(header).parent_path();
  return folder.empty() ? "." : folder.string();
}

template <class Number, class Parse>
std::vector<Number> parse_numbers(const std::string& path,
                                  const std::string& what,
                                  const std::string& text,
                                  const Parse& parse) {
  std::vector<Number> numbers;
  for (const std::string& word : header_words(text)) {
    char* end = nullptr;
    errno = 0;
    numbers.push_back(parse(word.c_str(), &end));
    const bool is_number = *end == '\0' && (errno != ERANGE || std::is_floating_point_v<Number>);
    if (is_number && numbers.size() <= 100) continue;
    throw DataError("{}: {} is '{}', expected numbers", path, what, printable(text, 40));
  }
  return numbers;
}

double length_of(const WorldVector& v) {
  return std::sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
}

WorldVector cross(const WorldVector& a, const WorldVector& b) {
  return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}

/// The factors between right, anterior, superior and left, posterior, superior.
constexpr double kLpsSigns[] = {-1, -1, 1};

/// Whether a plane's x and y are those of the world: two dimensions can't state more.
bool is_flat(const std::array<double, 12>& affine) {
  const bool is_in_plane = affine[2] == 0 && affine[6] == 0 && affine[8] == 0 && affine[9] == 0;
  return is_in_plane && affine[11] == 0 && std::fabs(affine[10]) == 1;
}

}  // namespace

std::vector<std::string> header_words(const std::string& text) {
  std::vector<std::string> words;
  std::size_t begin = 0;
  while ((begin = text.find_first_not_of(" \t", begin)) != std::string::npos) {
    const std::size_t end = std::min(text.find_first_of(" \t", begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return words;
}

std::string named_file(const std::string& header, const std::string& name) {
  bool is_below = !name.empty() && name[0] != '/' && printable(name, name.size()) == name;
  for (const std::string& part : split(name, '/')) is_below = is_below && part != "..";
  if (is_below) return (fs::path(folder_of(header)) / name).string();
  throw DataError("{}: its voxels are in '{}', expected a file below the header's folder",
                  header,
                  printable(name, 80));
}

std::string find_file(const std::string& header, const std::string& name) {
  const std::string path = named_file(header, name);
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  if (error) {
    throw DataError(
        "{}: its file {} can't be found ({}), expected it below the header's folder: copy it, too",
        header,
        printable(name, 80),
        error.message());
  }
  const fs::path folder = fs::canonical(folder_of(header), error);
  const auto ends = std::mismatch(folder.begin(), folder.end(), real.begin(), real.end());
  if (!error && ends.first == folder.end()) return path;
  throw DataError("{}: its file {} is a link out of the folder, expected a file within",
                  header,
                  printable(name, 80));
}

std::vector<std::string> numbered_names(const std::string& header,
                                        const std::string& pattern,
                                        int64_t count) {
  constexpr int64_t kMostFiles = 1 << 16;
  std::vector<std::string> words = header_words(pattern);
  const std::string name = words.empty() ? "" : words[0];
  const std::size_t begin = name.find('%'), end = name.find_first_not_of("0123456789", begin + 1);
  const auto fail = [&] {
    throw DataError("{}: its voxels are in '{}', expected files as NAME%03d.raw 1 9 1",
                    header,
                    printable(pattern, 80));
  };
  if (begin == std::string::npos || end == std::string::npos || end - begin > 4 ||
      std::string_view("di").find(name[end]) == std::string_view::npos ||
      name.find('%', end) != std::string::npos)
    fail();
  std::vector<int64_t> range;
  for (std::size_t i = 1; i < std::min<std::size_t>(words.size(), 4); ++i)
    range.push_back(whole_numbers(header, "a file's number", words[i]).at(0));
  const int64_t first = range.empty() ? 1 : range[0], step = range.size() > 2 ? range[2] : 1;
  if (std::abs(first) > INT32_MAX || count < 1 || count > kMostFiles || step == 0 ||
      std::abs(step) > INT32_MAX)
    fail();
  const int64_t last = range.size() > 1 ? range[1] : first + (count - 1) * step;
  if (std::abs(last) > INT64_MAX / 2 || (last - first) / step + 1 > kMostFiles) fail();
  const std::string digits = name.substr(begin + 1, end - begin - 1);
  const bool has_zeros = !digits.empty() && digits[0] == '0';
  const int width = std::atoi(digits.c_str());
  std::vector<std::string> names;
  for (int64_t i = first; step > 0 ? i <= last : i >= last; i += step) {
    const std::string number =
        has_zeros ? fmt::format("{:0{}}", i, width) : fmt::format("{:{}}", i, width);
    names.push_back(name.substr(0, begin) + number + name.substr(end + 1));
  }
  return names;
}

std::string read_text_header(const std::string& path, bool (*is_whole)(const std::string& text)) {
  constexpr std::size_t kMost = std::size_t{4} << 20;
  const InputFile file(path);
  std::string text;
  for (std::size_t size = 4096; size <= kMost; size *= 4) {
    const std::size_t before = text.size();
    text.resize(size);
    const int64_t got = file.read_at(before, text.data() + before, size - before);
    if (got < 0) throw_errno("can't be read", path, errno);
    text.resize(before + static_cast<std::size_t>(got));
    if (text.size() < size || is_whole(text)) return text;
  }
  throw DataError(path + ": a header of more than 4 MB, expected a short text in front of voxels");
}

uint64_t after_lines(const std::string& path,
                     const std::string& file,
                     uint64_t begin,
                     int64_t lines) {
  constexpr std::size_t kMost = std::size_t{1} << 20;
  if (lines < 1) return begin;
  std::string text(kMost, '\0');
  const int64_t got = InputFile(file).read_at(begin, text.data(), text.size());
  text.resize(static_cast<std::size_t>(std::max<int64_t>(got, 0)));
  std::size_t at = 0;
  for (; lines > 0 && at < text.size(); --lines)
    at = std::min(text.find('\n', at), text.size()) + 1;
  if (lines > 0 || at > text.size())
    throw DataError(path + ": skips more lines than there are, expected them within 1 MB");
  return begin + at;
}

std::vector<int64_t> whole_numbers(const std::string& path,
                                   const std::string& what,
                                   const std::string& text) {
  return parse_numbers<int64_t>(
      path, what, text, [](const char* word, char** end) { return std::strtoll(word, end, 10); });
}

std::vector<double> real_numbers(const std::string& path,
                                 const std::string& what,
                                 const std::string& text) {
  return parse_numbers<double>(path, what, text, std::strtod);
}

Geometry placed_geometry(std::vector<WorldVector> steps, const WorldVector& origin) {
  const WorldVector up = cross(steps[0], steps[1]);
  const double length = length_of(up);
  if (steps.size() == 2)  // of a plane: 1 mm upwards
    steps.push_back({up[0] / length, up[1] / length, up[2] / length});
  std::vector<double> spacing;
  bool is_solid = std::fabs(up[0] * steps[2][0] + up[1] * steps[2][1] + up[2] * steps[2][2]) > 0;
  for (const WorldVector& step : steps) {
    spacing.push_back(length_of(step));
    is_solid = is_solid && std::isfinite(spacing.back());
  }
  for (const double value : origin) is_solid = is_solid && std::isfinite(value);
  Geometry geometry = spaced_geometry(spacing);
  if (!is_solid) return geometry;
  for (std::size_t row = 0; row < 3; ++row) {
    for (std::size_t column = 0; column < 3; ++column)
      geometry.affine[4 * row + column] = steps[column][row] + 0.0;  // no -0
    geometry.affine[4 * row + 3] = origin[row] + 0.0;
  }
  return geometry;
}

Geometry axis_aligned_geometry(const std::vector<double>& steps_um,
                               const std::vector<double>* origin_um) {
  std::vector<WorldVector> steps;
  WorldVector origin{};
  std::vector<double> spacing;  // of x, y, z in mm
  bool is_placed = origin_um != nullptr;
  for (std::size_t i = 0; i < steps_um.size(); ++i) {
    const double step = steps_um[i] / 1000;
    spacing.push_back(std::fabs(step));
    steps.emplace_back()[i] = kLpsSigns[i] * step;
    if (origin_um != nullptr) origin[i] = kLpsSigns[i] * (*origin_um)[i] / 1000;
    is_placed = is_placed || step < 0;
  }
  Geometry geometry = spaced_geometry(spacing);
  const bool is_known = std::ranges::all_of(spacing, [](double distance) { return distance > 0; });
  // The spacing of a plane's axis that the file does not have stays unknown.
  if (is_placed && is_known && steps.size() >= 2)
    geometry.affine = placed_geometry(steps, origin).affine;
  return geometry;
}

std::optional<std::array<double, 3>> axis_aligned_origin_um(const Geometry& geometry) {
  if (!geometry.is_placed()) return std::nullopt;
  std::array<double, 3> origin{};
  for (std::size_t row = 0; row < 3; ++row) {
    const double* numbers = geometry.affine.data() + 4 * row;
    const double step = kLpsSigns[row] * numbers[row];
    for (std::size_t column = 0; column < 3; ++column) {
      if (!(step > 0) || (column != row && std::fabs(numbers[column]) > 1e-6 * step))
        return std::nullopt;
    }
    origin[row] = kLpsSigns[row] * numbers[3] * 1000 + 0.0;
  }
  return origin;
}

Geometry spaced_geometry(const std::vector<double>& spacing) {
  Geometry geometry;
  for (std::size_t i = 0; i < std::min<std::size_t>(spacing.size(), 3); ++i)
    geometry.spacing_um[2 - i] = spacing_of(spacing[i], 1000);
  return geometry;
}

LpsGeometry lps_geometry(const ImageInfo& info) {
  const Geometry& geometry = info.geometry;
  LpsGeometry lps;
  lps.is_placed = geometry.is_placed();
  const bool is_plane = info.shape[1] == 1;
  lps.dimensions = is_plane && (!lps.is_placed || is_flat(geometry.affine)) ? 2 : 3;
  for (std::size_t i = 0; i < 3; ++i) lps.spacing[i] = geometry.spacing_um[2 - i] / 1000;
  if (!lps.is_placed) return lps;
  for (std::size_t row = 0; row < 3; ++row) {
    const double sign = kLpsSigns[row];
    for (std::size_t column = 0; column < 3; ++column)
      lps.steps[column][row] = sign * geometry.affine[4 * row + column] + 0.0;
    lps.origin[row] = sign * geometry.affine[4 * row + 3] + 0.0;
  }
  for (std::size_t i = 0; i < 3; ++i) lps.spacing[i] = length_of(lps.steps[i]);
  return lps;
}

}  // namespace cytra::io
