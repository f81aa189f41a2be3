#pragma once
// The voxels that a label allows as centres of crops.
#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace cytra::data::spatial {

/// Bool ([Z,]Y,X) where a label (C,[Z,]Y,X) of any type is not 0; of several channels the first is
/// the background.
at::Tensor foreground_of(const at::Tensor& label);
/// Where it is of class `number`: that value of one channel, or not 0 in that of several.
at::Tensor class_of(const at::Tensor& label, int64_t number);

/// Voxels to choose from, counted in raster order: a mask, or a list of places (int32 or int64).
class Places {
 public:
  Places() = default;
  explicit Places(const at::Tensor& voxels);
  uint64_t count() const { return count_; }
  /// n < count().
  int64_t at(uint64_t n) const;
  /// The list.
  at::Tensor list() const;

 private:
  at::Tensor voxels_;
  std::vector<uint32_t> block_counts_;  // of a mask
  uint64_t count_ = 0;
};

}  // namespace cytra::data::spatial
