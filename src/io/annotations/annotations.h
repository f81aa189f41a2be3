#pragma once
// Annotations that people have drawn on an image: ImageJ ROIs, GeoJSON (QuPath), COCO, labelme,
// CVAT, Pascal VOC, YOLO and folders with a mask file for each object. Torch-free.
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "io/objects/coco_rle.h"
#include "io/objects/polygons.h"

namespace cytra::io {

/// An annotated object. Coordinates are pixels of its image: pixel (x, y) covers x to x + 1, y to
/// y + 1.
struct Annotation {
  std::string name;        // joins the planes of an object of a stack; "": it has one plane
  std::string class_name;  // "": no class
  int64_t plane = -1;      // of a stack, from 0; -1: all of them
  /// The parts, each filled by itself, where an odd number of its rings encloses the centre of a
  /// pixel, as ImageJ, QuPath and skimage.draw.polygon do.
  std::vector<std::vector<Ring>> parts;
  std::vector<CocoRle> masks;   // pixels inside, of the whole image
  std::array<double, 4> box{};  // x0, y0, x1, y1
  bool is_crowd = false;        // COCO's: several objects that are not separated
};

/// The image that annotations belong to.
struct AnnotatedImage {
  std::string path;
  int64_t depth = 1, height = 1, width = 1;
};

/// Whether a path is of annotations, by extension in any case: .roi .zip .geojson .json .xml .txt;
/// or masks of an image's objects, one file each.
bool is_annotation_path(const std::string& path);
/// Whether masks of an image's objects are meant, one file each: by a folder, which is no image
/// itself, or by a pattern, as a_*.png, where * stands for a number.
bool is_mask_folder(const std::string& path);
/// The masks that such a path means, sorted by name.
std::vector<std::string> mask_files(const std::string& path);
/// The pattern that a mask's path fits, by the last number of its name; "": it has none.
std::string mask_pattern(std::string path);

/// Lists annotation files in a folder, sorted, without hidden ones; `is_recursive`: also in
/// folders below. Throws: ConfigError for a folder that can't be read.
std::vector<std::string> list_annotations(const std::string& folder, bool is_recursive);

/// Reads the annotations of one image, in the file's order. The format follows from the content;
/// in a file of many images (COCO, CVAT), the image is found by the end of its path; YOLO's classes
/// have the names in data.yaml or classes.txt in its folder or one above, and an image without
/// objects may have no .txt. Thread: several at once; a file of many is kept in memory. Throws:
/// DataError naming the file and the place in it, ConfigError (no such file).
std::vector<Annotation> read_annotations(const std::string& path, const AnnotatedImage& image);

/// The names of the classes of several files: classes with an order (COCO's ids, YOLO's lists)
/// first, then the others by the alphabet. Throws: as read_annotations.
std::vector<std::string> class_names_of(const std::vector<std::string>& paths);

/// The images of a file of many (COCO, CVAT); empty for other files. Throws: as read_annotations.
std::vector<std::string> annotated_images(const std::string& path);

}  // namespace cytra::io
