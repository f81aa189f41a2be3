#pragma once
#include <string>
#include <vector>

#include "base/tensor_fwd.h"
#include "io/image.h"

namespace cytra::inference {

/// A row for each object, a column for each measurement; rows by label.
struct Measurements {
  std::vector<std::string> columns;
  std::vector<std::vector<double>> rows;
  /// As io::write_table takes them.
  std::vector<std::vector<std::string>> cells() const;
};

/// Of each label above 0, by the names of skimage.measure.regionprops_table and equal to it: label,
/// area (voxels), bbox-* (from, then up to and without), centroid-*, equivalent_diameter_area; of a
/// plane perimeter, eccentricity, axis_major_length, axis_minor_length; of each channel c of the
/// image intensity_mean-c, intensity_min-c, intensity_max-c, intensity_std-c. Axes are numbered as
/// in ([Z,]Y,X). Where the spacing is known also area_um2 or volume_um3, centroid_um-* and
/// equivalent_diameter_um.
/// Shape: labels ([D,]H,W) integers, image (C,[D,]H,W) real or undefined. Throws: DataError when
/// they do not fit.
Measurements measure(const Tensor& labels, const Tensor& image, const io::Geometry& geometry);

/// The objects of a mask: its connected voxels of one class, touching at corners, too.
struct MaskObjects {
  Tensor labels;                 // int32 as the mask: 0, else 1 to classes.size() - 1
  std::vector<int32_t> classes;  // by label; [0]: 0
};
/// Shape: mask ([D,]H,W) of class numbers, 0 for none. Throws: DataError for 2^31 objects or more.
MaskObjects objects_of(const Tensor& mask);

}  // namespace cytra::inference
