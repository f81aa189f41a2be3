#pragma once
#include <memory>
#include <string>
#include <vector>

#include "base/tensor_fwd.h"
#include "io/image.h"

namespace cytra::inference {

/// A row for each object, a column for each measurement; rows by label.
struct Measurements {
  std::vector<std::string> columns;
  std::vector<std::vector<double>> rows;
  /// The cells, as io::write_table expects them.
  std::vector<std::vector<std::string>> cells() const;
};

/// Measures each label above 0, with the names and values of skimage.measure.regionprops_table:
/// label, area (voxels), bbox-* (first, then one past the last), centroid-*,
/// equivalent_diameter_area; of a plane perimeter, eccentricity, axis_major_length,
/// axis_minor_length; of each channel c of the image intensity_mean-c, intensity_min-c,
/// intensity_max-c, intensity_std-c. Axes are numbered as in ([Z,]Y,X). Where the spacing is known
/// also area_um2 or volume_um3, centroid_um-* and equivalent_diameter_um.
/// Shape: labels ([D,]H,W) integers, image (C,[D,]H,W) real or undefined. Throws: DataError when
/// they do not fit.
Measurements measure(const Tensor& labels, const Tensor& image, const io::Geometry& geometry);

/// Does measure() for an image whose rows come in order. Memory: that of the rows, and some 200
/// bytes and 40 a channel for each object.
class RowMeasures {
 public:
  RowMeasures();
  ~RowMeasures();
  /// The next rows ([D,]H,W) of the labels, and (C,[D,]H,W) of the image; of all rows, or of none.
  void add(const Tensor& labels, const Tensor& image);
  /// The table, after the last rows.
  Measurements finish(const io::Geometry& geometry);

 private:
  class Objects;
  std::unique_ptr<Objects> objects_;
};

/// The objects of a mask: connected voxels of one class, also if they touch at corners only.
struct MaskObjects {
  Tensor labels;                 // int32 as the mask: 0, else 1 to classes.size() - 1
  std::vector<int32_t> classes;  // by label; [0]: 0
};
/// Finds the objects. Shape: mask ([D,]H,W) of class numbers, 0 for none. Throws: DataError for
/// 2^31 objects or more.
MaskObjects objects_of(const Tensor& mask);

}  // namespace cytra::inference
