// Part of ops/labels/operations.h: fills the holes of labels.
#include <algorithm>

#include <ATen/ATen.h>

#include "ops/boxes/label_boxes.h"
#include "ops/labels/operations.h"
#include "ops/labels/volume.h"

namespace cytra::ops {
namespace {

/// Finds the part of a box that is connected to its outside, by a flood from a border round it.
class Flood {
 public:
  Flood(int64_t connectivity, int64_t dims) {
    for (const Offset& offset : neighbours(connectivity)) {
      if (dims == 3 || offset[0] == 0) neighbours_.push_back(offset);
    }
  }

  /// Sets voxels of `box` with another value that are not connected to the outside to `value`.
  template <class T>
  void fill(at::Tensor& volume, const Box& box, T value) {
    const int64_t height = box.size(1) + 2, width = box.size(2) + 2;
    state_.assign(static_cast<std::size_t>((box.size(0) + 2) * height * width), kFree);
    steps_.clear();
    for (const auto& [z, y, x] : neighbours_) steps_.push_back((z * height + y) * width + x);
    T* const data = volume.mutable_data_ptr<T>();
    const auto for_rows = [&](const auto& change) {
      for (int64_t z = 0; z < box.size(0); ++z) {
        for (int64_t y = 0; y < box.size(1); ++y) {
          change(data + ((z + box.first[0]) * volume.size(1) + y + box.first[1]) * volume.size(2) +
                     box.first[2],
                 state_.data() + ((z + 1) * height + y + 1) * width + 1);
        }
      }
    };
    for_rows([&](const T* row, uint8_t* state) {
      for (int64_t x = 0; x < box.size(2); ++x) state[x] = row[x] == value ? kLabel : kFree;
    });
    from_border(height * width);
    for_rows([&](T* row, const uint8_t* state) {
      for (int64_t x = 0; x < box.size(2); ++x) {
        if (state[x] == kFree) row[x] = value;
      }
    });
  }

 private:
  enum : uint8_t { kFree, kLabel, kOut };
  void from_border(int64_t corner) {
    const auto count = static_cast<int64_t>(state_.size());
    state_[static_cast<std::size_t>(corner)] = kOut;
    stack_.assign(1, corner);
    while (!stack_.empty()) {
      const int64_t voxel = stack_.back();
      stack_.pop_back();
      for (const int64_t step : steps_) {
        const int64_t next = voxel + step;  // beyond a side of the border is its other side
        if (next < 0 || next >= count || state_[static_cast<std::size_t>(next)] != kFree) continue;
        state_[static_cast<std::size_t>(next)] = kOut;
        stack_.push_back(next);
      }
    }
  }

  std::vector<Offset> neighbours_;
  std::vector<int64_t> steps_, stack_;
  std::vector<uint8_t> state_;
};

/// Shape: labels ([Z,]Y,X) dense, written to.
template <class T>
void fill_labels(const at::Tensor& labels,
                 const std::vector<int64_t>& which,
                 int64_t connectivity) {
  at::Tensor volume = labels.dim() == 3 ? labels : labels.unsqueeze(0);
  Flood flood(checked_connectivity(connectivity, labels.dim()), labels.dim());
  for (const auto& [label, box] : boxes_of<T>(volume)) {
    const bool is_wanted = std::ranges::any_of(
        which, [l = label](int64_t other) { return static_cast<T>(other) == l; });
    if (which.empty() || is_wanted) flood.fill<T>(volume, box, label);
  }
}

}  // namespace

at::Tensor FillHoles::operator()(const at::Tensor& image) const {
  const bool is_integral = at::isIntegralType(image.scalar_type(), /*includeBool=*/true);
  at::Tensor result =
      image.to(is_integral ? at::kInt : at::kFloat, /*non_blocking=*/false, /*copy=*/true)
          .contiguous();
  const auto fill = [&](const at::Tensor& labels, const std::vector<int64_t>& which) {
    is_integral ? fill_labels<int32_t>(labels, which, connectivity.value_or(0))
                : fill_labels<float>(labels, which, connectivity.value_or(0));
  };
  if (image.size(0) == 1) {
    fill(result[0], applied_labels);
    return result.to(image.scalar_type());
  }
  for (int64_t c = 1; c < image.size(0); ++c) {
    const bool is_applied =
        applied_labels.empty() || std::ranges::find(applied_labels, c) != applied_labels.end();
    if (!is_applied) continue;
    result[c].copy_(image[c].ne(0));
    fill(result[c], {1});
  }
  return result.to(image.scalar_type());
}

}  // namespace cytra::ops
