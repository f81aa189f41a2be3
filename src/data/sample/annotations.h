#pragma once
// Uses annotations (io/annotations/annotations.h) as targets of a data set.
#include <map>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "data/datamodule.h"
#include "io/annotations/paint.h"

namespace cytra::data {

/// The target that the annotations of a key become.
struct AnnotationTarget {
  io::TargetKind kind = io::TargetKind::instances;
  std::vector<std::string> class_names = {};  // empty: classes do not matter
};

/// Paints the annotations of a file in the grid of their image, (C,[D,]H,W) int32.
/// Throws: DataError.
at::Tensor paint_target(const std::string& path,
                        const AnnotationTarget& target,
                        const std::string& image_path,
                        const io::ImageInfo& image,
                        int64_t spatial_dims);

/// The annotation files of training, validation and test by key, each once, sorted; none where the
/// training has none, or can't be listed.
std::map<std::string, std::vector<std::string>> annotation_files(const DataModule& module);

}  // namespace cytra::data
