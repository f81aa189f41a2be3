#include "io/annotations/annotations.h"

#include <algorithm>
#include <filesystem>
#include <list>
#include <memory>
#include <mutex>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/strings.h"
#include "io/annotations/formats.h"
#include "io/annotations/shapes.h"
#include "io/formats.h"
#include "io/image_folder.h"
#include "io/input_file.h"
#include "io/reader.h"

namespace cytra::io {
namespace {

namespace fs = std::filesystem;
constexpr const char* kExpected =
    "expected an ImageJ ROI or RoiSet.zip, GeoJSON, COCO, labelme, CVAT, Pascal VOC or YOLO";

std::string small_extension(const std::string& path) {
  return in_small_letters(fs::path(path).extension().string());
}

/// Lists the classes of files that do not list them: whole numbers by size, then others by the
/// alphabet.
void list_classes(AnnotationFile& file) {
  if (file.is_ordered) return;
  std::set<std::string> names;
  for (const ImageAnnotations& one : file.images)
    for (const Annotation& object : one.annotations)
      if (!object.class_name.empty()) names.insert(object.class_name);
  file.classes.assign(names.begin(), names.end());
}

/// Warns once, however often the file is read.
void warn_of_lines(const std::string& path, std::size_t count) {
  static std::mutex mutex;
  static std::set<std::string> told;
  const std::lock_guard lock(mutex);
  if (told.insert(path).second)
    log::warn("{}: {} lines, points or texts are left out: they have no area", path, count);
}

AnnotationFile parse_annotations(const std::string& path, const AnnotatedImage& image) {
  const std::string bytes = read_text_input(path, kMostAnnotationBytes);
  const std::size_t first = bytes.find_first_not_of(" \t\r\n");
  const char letter = first == std::string::npos ? '\0' : bytes[first];
  const std::string extension = small_extension(path);
  AnnotationFile file;
  if (bytes.starts_with("Iout")) {
    file = parse_imagej_roi(path, bytes);
  } else if (bytes.starts_with("PK")) {
    file = parse_roi_zip(path, bytes);
  } else if (letter == '{' || letter == '[') {
    file = parse_annotation_json(path, bytes);
  } else if (letter == '<') {
    const bool is_cvat = bytes.find("<annotations") != std::string::npos;
    file = is_cvat ? parse_cvat(path, bytes) : parse_voc(path, bytes);
  } else if (extension == ".txt") {
    file = parse_yolo(path, bytes, image);
  } else {
    throw DataError(
        "{}: {}, {}", path, bytes.empty() ? "an empty file" : "no annotations", kExpected);
  }
  list_classes(file);
  if (file.without_area > 0) warn_of_lines(path, file.without_area);
  return file;
}

using SharedFile = std::shared_ptr<const AnnotationFile>;

/// Opens a file of annotations; as COCO's files are of many images, the last few are kept.
SharedFile open_annotations(const std::string& path, const AnnotatedImage& image) {
  struct CachedFile {
    std::string path;
    fs::file_time_type time;
    uintmax_t bytes;
    SharedFile file;
  };
  constexpr std::size_t kMostKept = 4;
  static std::mutex mutex;
  static std::list<CachedFile> kept;
  if (const std::string extension = small_extension(path);
      extension != ".json" && extension != ".geojson" && extension != ".xml")
    return std::make_shared<AnnotationFile>(parse_annotations(path, image));
  std::error_code error;
  const fs::file_time_type time = fs::last_write_time(path, error);
  const uintmax_t bytes = fs::file_size(path, error);
  const std::lock_guard lock(mutex);  // parsed once for all threads
  for (const CachedFile& one : kept)
    if (one.path == path && one.time == time && one.bytes == bytes) return one.file;
  auto file = std::make_shared<AnnotationFile>(parse_annotations(path, image));
  if (!file->are_many) return file;
  kept.push_front({path, time, bytes, file});
  if (kept.size() > kMostKept) kept.pop_back();
  return file;
}

/// Whether `path` ends with the whole of `end`, folder by folder.
bool ends_with_path(const std::string& path, const std::string& end) {
  return path == end || (path.size() > end.size() && path.ends_with(end) &&
                         path[path.size() - end.size() - 1] == '/');
}

/// A path without the ending of its format: "in/a" for "in/a.tif".
std::string without_ending(const std::string& path) {
  return (fs::path(path).lexically_normal().parent_path() / stem_of(path)).string();
}

const ImageAnnotations& annotations_of(const AnnotationFile& file,
                                       const std::string& path,
                                       const AnnotatedImage& image) {
  if (!file.are_many) return file.images.at(0);
  const std::string name = last_name(image.path);
  std::vector<std::size_t> candidates;
  std::vector<std::string> choices;
  if (const auto same_name = file.by_name.find(name); same_name != file.by_name.end()) {
    candidates = same_name->second;
  } else {  // a.jpg is a.tif: images are often converted
    for (const auto& [choice, indices] : file.by_name) {
      choices.push_back(choice);
      if (stem_of(choice) == stem_of(name))
        candidates.insert(candidates.end(), indices.begin(), indices.end());
    }
  }
  if (candidates.empty()) {
    throw DataError("{}: no image is named '{}', expected the file_name of one.{}",
                    path,
                    printable(name, 200),
                    suggestion(name, choices));
  }
  const ImageAnnotations* best = nullptr;
  std::size_t longest = 0;
  bool is_one = true;
  for (const std::size_t at : candidates) {
    const ImageAnnotations& one = file.images[at];
    const std::string end = without_ending(one.image);
    if (!ends_with_path(without_ending(image.path), end) || end.size() < longest) continue;
    is_one = end.size() > longest || (is_one && one.image == best->image);
    if (end.size() > longest) best = &one;
    longest = end.size();
  }
  if (best == nullptr && candidates.size() == 1) best = &file.images[candidates[0]];
  if (best != nullptr && is_one) return *best;
  throw DataError("{}: {} images are named '{}', expected one in the folder of {}",
                  path,
                  candidates.size(),
                  printable(name, 200),
                  image.path);
}

/// YOLO has no file for an image without objects.
bool is_missing_yolo(const std::string& path) {
  return small_extension(path) == ".txt" && !path_exists(path);
}

/// Fills COCO's outlines as pycocotools does.
void fill_as_coco(const std::string& path, Annotation& object, const AnnotatedImage& image) {
  for (const CocoRle& mask : object.masks) {
    if (mask.height == image.height && mask.width == image.width) continue;
    throw DataError("{}: a mask of {} x {} pixels, expected the size of {}: {} x {}",
                    path,
                    mask.width,
                    mask.height,
                    image.path,
                    image.width,
                    image.height);
  }
  for (const auto& part : object.parts) {
    std::vector<double> corners;
    for (const auto& [x, y] : part.at(0)) corners.insert(corners.end(), {x, y});
    object.masks.push_back(fill_coco_polygon(path, corners, image.height, image.width));
  }
  object.parts.clear();
  if (object.masks.empty()) object.parts.push_back({rectangle(object.box)});
}

/// The names in a folder, sorted; the last folder is kept until it changes, as each image of it
/// asks.
std::vector<std::string> names_in(const fs::path& folder, const std::string& begin) {
  static std::mutex mutex;
  static fs::path last;
  static fs::file_time_type time;
  static std::vector<std::string> names;
  const std::lock_guard lock(mutex);
  std::error_code error;
  const fs::file_time_type now = fs::last_write_time(folder, error);
  if (last != folder || time != now) {
    names.clear();
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, error))
      names.push_back(entry.path().filename().string());
    std::ranges::sort(names);
    last = folder;
    time = now;
  }
  std::vector<std::string> found;
  for (auto one = std::ranges::lower_bound(names, begin);
       one != names.end() && one->starts_with(begin);
       ++one)
    found.push_back(*one);
  return found;
}

/// Whether a path is a pattern of mask files.
bool is_mask_pattern(const std::string& path) {
  return path.find('*', path.rfind('/') + 1) != std::string::npos && !path_exists(path);
}

}  // namespace

bool is_annotation_path(const std::string& path) {
  const std::string extension = small_extension(path);
  for (const char* known : {".roi", ".zip", ".geojson", ".json", ".xml", ".txt"})
    if (extension == known) return true;
  return is_mask_folder(path);
}

bool is_mask_folder(const std::string& path) {
  if (folder_exists(path)) return !is_image_path(path);
  return is_mask_pattern(path);
}

std::string mask_pattern(std::string path) {
  const std::size_t name = path.rfind('/') + 1, dot = path.find_last_of('.');
  std::size_t end = std::min(dot, path.size());
  while (end > name && !is_digit(path[end - 1])) --end;
  std::size_t begin = end;
  while (begin > name && is_digit(path[begin - 1])) --begin;
  return begin == end ? "" : path.replace(begin, end - begin, "*");
}

std::vector<std::string> mask_files(const std::string& path) {
  if (!is_mask_pattern(path)) return list_images(path);
  const fs::path folder = fs::path(path).parent_path();
  const std::string pattern = fs::path(path).filename().string();
  const std::size_t star = pattern.find('*');
  const std::string begin = pattern.substr(0, star), end = pattern.substr(star + 1);
  std::vector<std::string> files;
  for (const std::string& name : names_in(folder.empty() ? "." : folder, begin)) {
    if (name.size() <= begin.size() + end.size() || !name.ends_with(end)) continue;
    if (std::all_of(name.begin() + static_cast<std::ptrdiff_t>(begin.size()),
                    name.end() - static_cast<std::ptrdiff_t>(end.size()),
                    is_digit))
      files.push_back((folder / name).string());
  }
  return files;
}

std::vector<std::string> list_annotations(const std::string& folder, bool is_recursive) {
  std::vector<std::string> found;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string path = entry->path().string();
    const bool is_left_out = is_hidden(entry->path().filename().string());
    std::error_code ignored;
    if (entry->is_directory(ignored)) {
      if (is_left_out || !is_recursive) entry.disable_recursion_pending();
    } else if (!is_left_out && is_annotation_path(path)) {
      found.push_back(path);
    }
  }
  if (error) throw ConfigError(folder + ": can't be read: " + error.message());
  std::ranges::sort(found);
  return found;
}

std::vector<Annotation> read_annotations(const std::string& path, const AnnotatedImage& image) {
  if (is_mask_folder(path)) return read_mask_folder(path, image);
  if (is_missing_yolo(path)) return {};
  const SharedFile file = open_annotations(path, image);
  const ImageAnnotations& one = annotations_of(*file, path, image);
  const bool differs =
      (one.height > 0 && one.height != image.height) || (one.width > 0 && one.width != image.width);
  if (differs) {
    throw DataError("{}: annotations of {} x {} pixels, expected the size of {}: {} x {}",
                    path,
                    one.width,
                    one.height,
                    image.path,
                    image.width,
                    image.height);
  }
  std::vector<Annotation> annotations = one.annotations;
  if (file->is_coco)
    for (Annotation& object : annotations) fill_as_coco(path, object, image);
  return annotations;
}

std::vector<std::string> class_names_of(const std::vector<std::string>& paths) {
  std::vector<std::string> ordered;
  std::set<std::string> others;
  for (const std::string& path : paths) {
    if (is_mask_folder(path) || is_missing_yolo(path)) continue;  // without classes
    const SharedFile file = open_annotations(path, {});
    for (const std::string& name : file->classes) {
      if (!file->is_ordered) {
        others.insert(name);
      } else if (!contains(ordered, name)) {
        ordered.push_back(name);
      }
    }
  }
  std::vector<std::string> rest;
  for (const std::string& name : others)
    if (!contains(ordered, name)) rest.push_back(name);
  const auto is_number = [](const std::string& name) {
    return name.find_first_not_of("0123456789") == std::string::npos;
  };
  std::ranges::sort(rest, [&](const std::string& a, const std::string& b) {
    if (is_number(a) && is_number(b) && a.size() != b.size()) return a.size() < b.size();
    return a < b;
  });
  ordered.insert(ordered.end(), rest.begin(), rest.end());
  return ordered;
}

std::vector<std::string> annotated_images(const std::string& path) {
  const SharedFile file = open_annotations(path, {});
  std::vector<std::string> images;
  if (!file->are_many) return images;
  for (const ImageAnnotations& one : file->images) images.push_back(one.image);
  return images;
}

}  // namespace cytra::io
