#pragma once
// The voxels that a label allows as centres of crops.
#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace cytra::data::spatial {

/// Voxels to choose from, counted in raster order. No mask is made, since this is done for each
/// crop over a whole label.
class Places {
 public:
  Places() = default;
  /// The places where voxels, of any type, have this number; `others`: where they have another.
  Places(const at::Tensor& voxels, int64_t number, bool others = false);
  /// The places of a list, int32 or int64.
  explicit Places(const at::Tensor& list);
  uint64_t count() const { return count_; }
  /// The n-th place; n < count().
  int64_t at(uint64_t n) const;
  /// The other voxels; not available for a list.
  Places others() const;
  /// The places where `mask` (bool, as many voxels) is set; not available for a list.
  Places within(const at::Tensor& mask) const;
  /// The places as a list, int32 where that is enough.
  at::Tensor list() const;

 private:
  at::Tensor voxels_;
  int64_t number_ = 0;
  bool others_ = false, is_list_ = false;
  std::vector<uint32_t> block_counts_;
  uint64_t count_ = 0;
};

/// The places where a label (C,[Z,]Y,X) is not 0; of several channels the first is the background.
Places foreground_of(const at::Tensor& label);
/// The places of class `number`: this value in a single channel, or not 0 in this one of several
/// channels.
Places class_of(const at::Tensor& label, int64_t number);

}  // namespace cytra::data::spatial
