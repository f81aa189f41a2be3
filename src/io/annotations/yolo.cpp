// Part of io/annotations/formats.h: YOLO's text, a line for each object, its class's number and a
// box (middle and size) or the corners of an outline, as shares of the image's sides. Source:
// docs.ultralytics.com/datasets.
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/strings.h"
#include "config/node.h"
#include "io/annotations/formats.h"
#include "io/annotations/shapes.h"
#include "io/input_file.h"

namespace cytra::io {
namespace {

namespace fs = std::filesystem;
constexpr int64_t kMostClassNumber = 100'000;
constexpr uint64_t kMostNameBytes = uint64_t{1} << 24;

/// The names in data.yaml: a list, or a map of numbers.
std::vector<std::string> names_of_yaml(const std::string& path) {
  const config::Node root = config::parse_yaml(read_text_input(path, kMostNameBytes), path);
  const config::Node* names = root.is_map() ? root.find_direct("names") : nullptr;
  std::vector<std::string> result;
  if (names == nullptr) return result;
  for (const config::Node& name : names->list) result.push_back(name.as<std::string>());
  for (const auto& [number, name] : names->map) {
    char* end = nullptr;
    const long long at = std::strtoll(number.c_str(), &end, 10);
    if (number.empty() || *end != '\0' || at < 0 || at > kMostClassNumber)
      throw DataError("{}: names.{}: expected the number of a class", path, number);
    if (result.size() <= static_cast<std::size_t>(at))
      result.resize(static_cast<std::size_t>(at) + 1);
    result[static_cast<std::size_t>(at)] = name.as<std::string>();
  }
  return result;
}

/// The names of classes in the file's folder, or in one of two folders above it.
std::vector<std::string> yolo_names(const std::string& path) {
  fs::path folder = fs::path(path).parent_path();
  if (folder.empty()) folder = ".";
  for (int level = 0; level < 4; ++level, folder /= "..") {
    for (const char* name : {"data.yaml", "data.yml", "dataset.yaml"}) {
      const std::string file = (folder / name).lexically_normal().string();
      if (!file_exists(file)) continue;
      std::vector<std::string> names = names_of_yaml(file);
      if (!names.empty()) return names;
    }
    for (const char* name : {"classes.txt", "obj.names"}) {
      const std::string file = (folder / name).lexically_normal().string();
      if (!file_exists(file)) continue;
      std::vector<std::string> names;
      for (const std::string& line : split(read_text_input(file, kMostNameBytes), '\n'))
        if (!trim(line).empty()) names.push_back(trim(line));
      return names;
    }
  }
  return {};
}

}  // namespace

AnnotationFile parse_yolo(const std::string& path,
                          const std::string& bytes,
                          const AnnotatedImage& image) {
  AnnotationFile file;
  ImageAnnotations& listed = file.images.emplace_back();
  file.classes = yolo_names(path);
  file.is_ordered = !file.classes.empty();
  const double sides[] = {static_cast<double>(image.width), static_cast<double>(image.height)};
  std::size_t number = 0;
  for (std::size_t at = 0; at < bytes.size();) {
    ++number;
    const std::size_t end = std::min(bytes.find('\n', at), bytes.size());
    const std::string line = bytes.substr(at, end - at);
    at = end + 1;
    std::vector<double> values;
    const char* next = line.c_str();
    for (char* stop = nullptr;; next = stop) {
      const double value = std::strtod(next, &stop);
      if (stop == next) break;
      values.push_back(value);
    }
    if (values.empty() && trim(line).empty()) continue;
    const std::string place = fmt::format("{}:{}", path, number);
    const auto refuse = [&](const std::string& what) {
      throw DataError(
          "{}: {}, expected a class's number, then x, y, width and height, or x and y of three "
          "corners or more, as shares (0 to 1) of the image's sides",
          place,
          what);
    };
    if (!trim(next).empty()) refuse("'" + printable(trim(next), 40) + "'");
    const bool is_box = values.size() == 5 || values.size() == 6;  // the sixth: a confidence
    if (!is_box && (values.size() < 7 || values.size() % 2 == 0))
      refuse(fmt::format("{} numbers", values.size()));
    if (!(values[0] >= 0 && values[0] < kMostClassNumber) ||
        values[0] != static_cast<double>(static_cast<int64_t>(values[0])))
      refuse(fmt::format("the class {}", values[0]));
    const auto own = static_cast<std::size_t>(values[0]);
    for (std::size_t i = 1; i < (is_box ? 5 : values.size()); ++i)
      if (!(values[i] >= -0.5 && values[i] <= 1.5)) refuse(fmt::format("{}", values[i]));
    if (file.is_ordered && own >= file.classes.size())
      throw DataError("{}: the class {}, expected 0 to {}: there are {} names",
                      place,
                      own,
                      file.classes.size() - 1,
                      file.classes.size());
    Annotation& object = listed.annotations.emplace_back();
    object.class_name = file.is_ordered ? file.classes[own] : std::to_string(own);
    if (is_box) {
      const double x = values[1] * sides[0], y = values[2] * sides[1];
      const double width = values[3] * sides[0] / 2, height = values[4] * sides[1] / 2;
      object.box = {x - width, y - height, x + width, y + height};
      object.parts.push_back({rectangle(object.box)});
      continue;
    }
    Ring ring;
    for (std::size_t i = 1; i + 1 < values.size(); i += 2)
      ring.push_back({values[i] * sides[0], values[i + 1] * sides[1]});
    object.parts.push_back({std::move(ring)});
    object.box = box_around(object);
  }
  return file;
}

}  // namespace cytra::io
