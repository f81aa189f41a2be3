#pragma once
// Paints annotations in an image's grid.
#include <cstdint>
#include <string>
#include <vector>

#include "io/annotations/annotations.h"

namespace cytra::io {

enum class TargetKind {
  instances,  // 0 for none, 1 ... for each object; a later one is painted over an earlier one
  classes,    // 0 for none, 1 ... by class_names; a later one is painted over an earlier one
  mask,       // 1 in any object
  channels,   // a mask for each of class_names
  boxes,      // layers of filled boxes without overlap: class (1 ...) * box_class() + a number
};
TargetKind target_kind(const std::string& name);
extern const std::vector<std::string> kTargetKinds;  // their names
/// The distance of two classes' numbers: with any number of classes, float32 holds them.
constexpr int64_t box_class(int64_t classes) {
  return classes <= 255 ? 65536 : (int64_t{1} << 24) / (classes + 1);
}

/// Paints (C, Z, Y, X) in the image's grid. Throws: DataError naming `path` for a class that
/// class_names do not have (unless it is empty), a plane that the image does not have, more
/// overlapping objects than can be painted.
Image paint_annotations(const std::string& path,
                        const std::vector<Annotation>& annotations,
                        const AnnotatedImage& image,
                        TargetKind kind,
                        const std::vector<std::string>& class_names);

}  // namespace cytra::io
