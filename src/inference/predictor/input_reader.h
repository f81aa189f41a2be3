#pragma once
// Rows of an image that is read when they are requested.
#include <algorithm>
#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>

#include "data/sample/image_tensor.h"
#include "inference/predictor/input.h"
#include "ops/labels/row_step.h"

namespace cytra::inference {

/// Reads the rows of an image in blocks, one block ahead of the requested rows.
class ModelInput::Reader {
 public:
  explicit Reader(data::ImageRequest image)
      : image_(std::move(image)),
        axis_(image_.spatial_dims == 3 ? 0 : 1),
        count_(image_.region.size[axis_]) {
    constexpr int64_t kBlock = int64_t{32} << 20, kChunk = 64;  // bytes; rows of a common chunk
    int64_t row = 4 * image_.reader->info().shape[0];
    for (std::size_t d = axis_ + 1; d < 3; ++d) row *= image_.region.size[d];
    step_ = std::max<int64_t>(kBlock / row, 1);
    if (step_ > kChunk) step_ -= step_ % kChunk;
  }
  ~Reader() {
    if (next_.valid()) next_.wait();
  }
  Reader& operator=(Reader&&) = delete;

  int64_t count() const { return count_; }
  int64_t bytes() const { return loading_bytes(image_.reader->info()); }
  bool has_changes() const { return !changes_.empty(); }
  /// `channels`: those that transforms make of it; 0: as there are.
  std::vector<int64_t> shape(int64_t channels = 0) const {
    std::vector<int64_t> shape{channels > 0 ? channels : image_.reader->info().shape[0]};
    for (std::size_t d = axis_; d < 3; ++d) shape.push_back(image_.region.size[d]);
    return shape;
  }
  /// Adds a change of rows, which belongs to `owner`.
  void add(data::RowChange change, std::shared_ptr<data::Transform> owner) {
    changes_.push_back(std::move(change));
    owners_.push_back(std::move(owner));
  }

  at::Tensor loaded(int64_t first, int64_t count) const {
    return data::read_tensor(request(first, count)).to(at::kFloat);
  }
  std::shared_ptr<Reader> part(int64_t first, int64_t count) const {
    auto made = std::make_shared<Reader>(request(first, count));
    made->changes_ = changes_;
    made->owners_ = owners_;
    return made;
  }
  /// All rows, with their changes or as loaded. `folder`: as ops::room_for().
  at::Tensor whole(bool with_changes, const std::string& folder) const {
    at::Tensor all;
    for (int64_t first = 0; first < count_; first += step_) {
      const int64_t count = std::min(step_, count_ - first);
      const at::Tensor rows = with_changes ? changed(first, count) : loaded(first, count);
      if (!all.defined()) {
        std::vector<int64_t> shape = rows.sizes().vec();
        shape[1] = count_;
        all = ops::room_for(shape, at::kFloat, folder);
      }
      all.narrow(1, first, count).copy_(rows);
    }
    return all;
  }
  void scan(const data::Rows& look) const {
    for (int64_t first = 0; first < count_; first += step_)
      look(changed(first, std::min(step_, count_ - first)));
  }
  at::Tensor rows(int64_t first, int64_t count) {
    std::vector<at::Tensor> parts;
    while (count > 0) {
      const at::Tensor& block = block_of(first / step_);
      const int64_t within = first % step_, some = std::min(count, block.size(1) - within);
      parts.push_back(block.narrow(1, within, some));
      first += some;
      count -= some;
    }
    return parts.size() == 1 ? parts[0] : at::cat(parts, 1);
  }

 private:
  data::ImageRequest request(int64_t first, int64_t count) const {
    data::ImageRequest part = image_;
    part.region.begin[axis_] += first;
    part.region.size[axis_] = count;
    return part;
  }
  at::Tensor changed(int64_t first, int64_t count) const {
    at::Tensor rows = loaded(first, count);
    for (const data::RowChange& change : changes_) rows = change(rows);
    return rows;
  }
  at::Tensor read_block(int64_t number) const {
    return changed(number * step_, std::min(step_, count_ - number * step_));
  }
  const at::Tensor& block_of(int64_t number) {
    if (number == number_) return block_;
    block_.reset();
    block_ = next_.valid() && next_number_ == number ? next_.get() : read_block(number);
    number_ = number;
    if (next_.valid()) next_.wait();
    next_number_ = number + 1;
    next_ = {};
    if (next_number_ * step_ < count_) {
      next_ = std::async(std::launch::async,
                         [this, ahead = next_number_] { return read_block(ahead); });
    }
    return block_;
  }

  data::ImageRequest image_;
  std::size_t axis_;  // of Z, Y, X
  int64_t count_, step_ = 1, number_ = -1, next_number_ = -1;
  std::vector<data::RowChange> changes_;
  data::Transforms owners_;
  at::Tensor block_;
  std::future<at::Tensor> next_;
};

}  // namespace cytra::inference
