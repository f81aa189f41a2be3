#pragma once
// The voxels that a label allows as centres of crops.
#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace cytra::data::spatial {

/// Voxels to choose from, counted in raster order. Made without a mask: this is done for each crop,
/// and over a whole label.
class Places {
 public:
  Places() = default;
  /// Where voxels, of any type, have this number; `others`: where they have not.
  Places(const at::Tensor& voxels, int64_t number, bool others = false);
  /// Those of a list of places, int32 or int64.
  explicit Places(const at::Tensor& list);
  uint64_t count() const { return count_; }
  /// n < count().
  int64_t at(uint64_t n) const;
  /// Voxels that are not of these; not of a list.
  Places others() const;
  /// Those where `mask`, bool of as many voxels, is set; not of a list.
  Places within(const at::Tensor& mask) const;
  /// The list, int32 where that is enough.
  at::Tensor list() const;

 private:
  at::Tensor voxels_;
  int64_t number_ = 0;
  bool others_ = false, is_list_ = false;
  std::vector<uint32_t> block_counts_;
  uint64_t count_ = 0;
};

/// Where a label (C,[Z,]Y,X) is not 0; of several channels the first is the background.
Places foreground_of(const at::Tensor& label);
/// Where it is of class `number`: that value of one channel, or not 0 in that of several.
Places class_of(const at::Tensor& label, int64_t number);

}  // namespace cytra::data::spatial
