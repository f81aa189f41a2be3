#pragma once
// The functions of each format of annotations; for annotations.cpp only.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "io/annotations/annotations.h"

namespace cytra::io {

constexpr uint64_t kMostAnnotationBytes = uint64_t{1} << 30;

struct ImageAnnotations {
  std::string image;              // the end of its path; "": any
  int64_t height = 0, width = 0;  // 0: not given
  std::vector<Annotation> annotations;
};

/// The content of a file, for all of its images.
struct AnnotationFile {
  std::vector<ImageAnnotations> images;
  std::vector<std::string> classes;  // in the file's order, or the alphabet's
  bool is_ordered = false;           // `classes` have their own order
  bool are_many = false;             // a file of several images, found by their names
  bool is_coco = false;              // its outlines are filled as pycocotools does
  std::size_t without_area = 0;      // lines, points and texts, which are left out
  std::map<std::string, std::vector<std::size_t>>
      by_name;  // indices of several images, by their names
};

/// Each parses the annotations in the bytes of a file. Throws: DataError naming `path`.
AnnotationFile parse_imagej_roi(const std::string& path, const std::string& bytes);
AnnotationFile parse_roi_zip(const std::string& path, const std::string& bytes);
/// Parses GeoJSON, COCO and labelme.
AnnotationFile parse_annotation_json(const std::string& path, const std::string& bytes);
AnnotationFile parse_voc(const std::string& path, const std::string& bytes);
AnnotationFile parse_cvat(const std::string& path, const std::string& bytes);
/// Parses YOLO, whose numbers are shares of the image's sides, so it needs `image`.
AnnotationFile parse_yolo(const std::string& path,
                          const std::string& bytes,
                          const AnnotatedImage& image);

/// Reads the objects of an image from the mask_files() of a path, one for each;
/// the image's own file in the folder is not a mask. Throws: DataError naming the file.
std::vector<Annotation> read_mask_folder(const std::string& folder, const AnnotatedImage& image);

}  // namespace cytra::io
