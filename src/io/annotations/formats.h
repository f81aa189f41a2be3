#pragma once
// What each format of annotations offers; for annotations.cpp alone.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "io/annotations/annotations.h"

namespace cytra::io {

constexpr uint64_t kMostAnnotationBytes = uint64_t{1} << 30;

/// What a file holds, whatever image it is of.
struct AnnotationFile {
  struct Part {                     // of one image
    std::string image;              // the end of its path; "": any
    int64_t height = 0, width = 0;  // 0: not said
    std::vector<Annotation> annotations;
  };
  std::vector<Part> parts;
  std::vector<std::string> classes;  // in the file's order, or the alphabet's
  bool is_ordered = false;           // `classes` have an order of their own
  bool is_coco = false;
  std::size_t without_area = 0;  // lines, points and texts, which are left out
  std::map<std::string, std::vector<std::size_t>> by_name;  // of COCO: parts, by their image's name
};

/// Each: annotations of a file whose bytes these are. Throws: DataError naming `path`.
AnnotationFile parse_imagej_roi(const std::string& path, const std::string& bytes);
AnnotationFile parse_roi_zip(const std::string& path, const std::string& bytes);
/// GeoJSON, COCO and labelme.
AnnotationFile parse_annotation_json(const std::string& path, const std::string& bytes);
AnnotationFile parse_voc(const std::string& path, const std::string& bytes);
/// Numbers are parts of the image's sides, so it needs `image`.
AnnotationFile parse_yolo(const std::string& path,
                          const std::string& bytes,
                          const AnnotatedImage& image);

/// The objects of an image by the mask files of a folder, one for each, sorted by name; the image's
/// own file, where it lies there, is none. Throws: DataError naming the file.
std::vector<Annotation> read_mask_folder(const std::string& folder, const AnnotatedImage& image);

}  // namespace cytra::io
