#pragma once
// Connected components of an image, and of one that comes slab by slab.
#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace cytra::ops {

/// Connected voxels of one value other than 0.
struct Components {
  at::Tensor labels;           // int32, shaped as the image: 0 where the value is 0, else 1..count
  int64_t count = 0;           // labels ascend by each component's first voxel
  std::vector<int64_t> sizes;  // voxels by label, count + 1 of them; [0]: those of value 0
};

/// Numbers the connected components. It uses runs along X and a union-find over them, so the
/// memory beyond the labels grows with the number of runs.
/// Shape: values ([Z,]Y,X) of any real type; NaN is background. Voxels touch when they differ by 1
/// along at most `connectivity` axes; 0: all axes. Throws: DataError for more connectivity than
/// axes, and for 2^31 runs or more. Source: skimage.measure.label, scipy.ndimage.label (equal
/// numbers).
Components connected_components(const at::Tensor& values, int64_t connectivity);

/// Numbers the components of an image whose rows along its outer axis come slab by slab: what
/// add() returns can be written to a file, and is renumbered after the last row:
///   for (slab : slabs) write(components.add(slab));
///   const std::vector<int32_t> numbers = components.finish();
///   for (slab : written) slab = numbers[slab];        // equal to connected_components(whole)
class StitchedComponents {
 public:
  /// `dims`: the image's spatial dimensions.
  StitchedComponents(int64_t connectivity, int64_t dims);
  /// The next rows ([Z,]Y,X), one or more -> int32 labels, of which no other slab has any but 0.
  /// Throws: DataError when rows differ in size from those before; for 2^31 labels or more.
  at::Tensor add(const at::Tensor& rows);
  /// The number, for each label of add(), of its component in the whole image, 1..count(); [0] is
  /// 0.
  std::vector<int32_t> finish() const;
  int64_t count() const;

 private:
  void stitch(const at::Tensor& values, const at::Tensor& labels);

  int64_t connectivity_, dims_;
  std::vector<int32_t> parents_{0};  // of labels; a root is its component's first
  at::Tensor last_values_, last_labels_;
};

}  // namespace cytra::ops
