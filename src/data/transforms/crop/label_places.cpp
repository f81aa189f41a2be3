#include "data/transforms/crop/label_places.h"

#include <algorithm>
#include <limits>

#include <ATen/ATen.h>

namespace cytra::data::spatial {
namespace {

constexpr int64_t kBlock = 4096;

/// Calls use() with the voxels in their type; rare types become float32.
void visit(const at::Tensor& voxels, const auto& use) {
  switch (voxels.scalar_type()) {
    case at::kBool:
      return use(static_cast<const uint8_t*>(voxels.const_data_ptr()));
    case at::kByte:
      return use(voxels.const_data_ptr<uint8_t>());
    case at::kUInt16:
      return use(voxels.const_data_ptr<uint16_t>());
    case at::kShort:
      return use(voxels.const_data_ptr<int16_t>());
    default:
      return use(voxels.const_data_ptr<float>());
  }
}

at::Tensor visitable(const at::Tensor& voxels) {
  for (const at::ScalarType type : {at::kBool, at::kByte, at::kUInt16, at::kShort}) {
    if (voxels.scalar_type() == type) return voxels.contiguous();
  }
  return voxels.to(at::kFloat).contiguous();
}

/// Whether a voxel counts. A number that the type on file can't hold never occurs.
template <class T>
struct VoxelTest {
  T wanted;
  bool possible, others;
  VoxelTest(int64_t number, bool of_others)
      : wanted(static_cast<T>(number)),
        possible(static_cast<int64_t>(wanted) == number),
        others(of_others) {}
  bool operator()(T voxel) const { return (possible && voxel == wanted) != others; }
};
template <class T>
VoxelTest<T> test_of(const T*, int64_t number, bool others) {
  return VoxelTest<T>(number, others);
}

}  // namespace

Places::Places(const at::Tensor& voxels, int64_t number, bool others)
    : voxels_(visitable(voxels)), number_(number), others_(others) {
  visit(voxels_, [&](const auto* voxel) {
    const auto is = test_of(voxel, number, others);
    for (int64_t begin = 0; begin < voxels_.numel(); begin += kBlock) {
      const int64_t end = std::min(begin + kBlock, voxels_.numel());
      uint32_t count = 0;
      for (int64_t i = begin; i < end; ++i) count += is(voxel[i]) ? 1U : 0U;
      block_counts_.push_back(count);
      count_ += count;
    }
  });
}

Places::Places(const at::Tensor& list)
    : voxels_(list.contiguous()), is_list_(true), count_(static_cast<uint64_t>(list.numel())) {}

int64_t Places::at(uint64_t n) const {
  if (is_list_) {
    return voxels_.scalar_type() == at::kInt ? voxels_.const_data_ptr<int32_t>()[n]
                                             : voxels_.const_data_ptr<int64_t>()[n];
  }
  std::size_t block = 0;
  while (n >= block_counts_[block]) n -= block_counts_[block++];
  auto place = static_cast<int64_t>(block) * kBlock;
  visit(voxels_, [&](const auto* voxel) {
    const auto is = test_of(voxel, number_, others_);
    while (!is(voxel[place]) || n-- > 0) ++place;
  });
  return place;
}

Places Places::others() const {
  Places result = *this;
  result.others_ = !others_;
  result.count_ = static_cast<uint64_t>(voxels_.numel()) - count_;
  for (std::size_t block = 0; block < block_counts_.size(); ++block) {
    const int64_t begin = static_cast<int64_t>(block) * kBlock;
    const auto size = static_cast<uint32_t>(std::min(kBlock, voxels_.numel() - begin));
    result.block_counts_[block] = size - block_counts_[block];
  }
  return result;
}

Places Places::within(const at::Tensor& mask) const {
  at::Tensor both = mask.clone(at::MemoryFormat::Contiguous);
  bool* set = both.mutable_data_ptr<bool>();
  visit(voxels_, [&](const auto* voxel) {
    const auto is = test_of(voxel, number_, others_);
    for (int64_t i = 0; i < voxels_.numel(); ++i) set[i] = set[i] && is(voxel[i]);
  });
  return Places(both, 0, true);
}

at::Tensor Places::list() const {
  if (is_list_) return voxels_;
  at::Tensor list = at::empty({static_cast<int64_t>(count_)}, at::kLong);
  auto* next = list.mutable_data_ptr<int64_t>();
  visit(voxels_, [&](const auto* voxel) {
    const auto is = test_of(voxel, number_, others_);
    for (int64_t i = 0; i < voxels_.numel(); ++i) {
      if (is(voxel[i])) *next++ = i;
    }
  });
  return voxels_.numel() <= std::numeric_limits<int32_t>::max() ? list.to(at::kInt) : list;
}

Places foreground_of(const at::Tensor& label) {
  if (label.size(0) == 1) return Places(label[0], 0, true);
  const at::Tensor shown = label.slice(0, 1).to(at::kBool);
  return Places(shown.size(0) == 1 ? shown[0] : shown.any(0), 0, true);
}

Places class_of(const at::Tensor& label, int64_t number) {
  return label.size(0) > 1 ? Places(label[number], 0, true) : Places(label[0], number);
}

}  // namespace cytra::data::spatial
