#include "data/transforms/label_places.h"

#include <algorithm>
#include <limits>

#include <ATen/ATen.h>

namespace cytra::data::spatial {
namespace {

constexpr int64_t kBlock = 4096;

}  // namespace

at::Tensor foreground_of(const at::Tensor& label) {
  const at::Tensor shown = label.size(0) > 1 ? label.slice(0, 1) : label;
  return shown.size(0) == 1 ? shown[0].ne(0) : shown.ne(0).any(0);
}

at::Tensor class_of(const at::Tensor& label, int64_t number) {
  if (label.size(0) > 1) return label[number].ne(0);
  // Torch would wrap the number around the type on file.
  const bool fits = !at::isIntegralType(label.scalar_type(), /*includeBool=*/false) ||
                    label.element_size() > 4 ||
                    number < int64_t{1} << (8 * label.element_size() - 1) ||
                    (!label.is_signed() && number < int64_t{1} << (8 * label.element_size()));
  return fits ? label[0].eq(number) : at::zeros(label.sizes().slice(1), at::kBool);
}

Places::Places(const at::Tensor& voxels) : voxels_(voxels.contiguous()) {
  if (voxels_.scalar_type() != at::kBool) {
    count_ = static_cast<uint64_t>(voxels_.numel());
    return;
  }
  const auto* set = static_cast<const uint8_t*>(voxels_.const_data_ptr());
  for (int64_t begin = 0; begin < voxels_.numel(); begin += kBlock) {
    const int64_t end = std::min(begin + kBlock, voxels_.numel());
    uint32_t count = 0;
    for (int64_t i = begin; i < end; ++i) count += set[i];
    block_counts_.push_back(count);
    count_ += count;
  }
}

int64_t Places::at(uint64_t n) const {
  if (voxels_.scalar_type() == at::kInt) return voxels_.const_data_ptr<int32_t>()[n];
  if (voxels_.scalar_type() == at::kLong) return voxels_.const_data_ptr<int64_t>()[n];
  std::size_t block = 0;
  while (n >= block_counts_[block]) n -= block_counts_[block++];
  const bool* set = voxels_.const_data_ptr<bool>();
  auto place = static_cast<int64_t>(block) * kBlock;
  while (!set[place] || n-- > 0) ++place;
  return place;
}

at::Tensor Places::list() const {
  if (voxels_.scalar_type() != at::kBool) return voxels_;
  const at::Tensor places = voxels_.flatten().nonzero().flatten();
  return voxels_.numel() <= std::numeric_limits<int32_t>::max() ? places.to(at::kInt) : places;
}

}  // namespace cytra::data::spatial
