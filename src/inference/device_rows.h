#pragma once
// Rows between the host and a device, on streams of their own: the next ones go up, and finished
// ones come down, while windows are computed.
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include "base/tensor_fwd.h"
#include "inference/slabs.h"

namespace cytra::inference {

/// Of each of the images (N,...) whether all its values are finite. Waits once.
std::vector<bool> are_finite(const Tensor& images);

/// Rows on their way to a device; on a CPU they stay what they are.
class RowUpload {
 public:
  explicit RowUpload(c10::Device device);
  ~RowUpload();
  RowUpload(const RowUpload&) = delete;
  RowUpload& operator=(const RowUpload&) = delete;
  /// Those before have been taken. Shape: (C,n,...), of the host.
  void start(const Tensor& rows);
  bool is_under_way() const { return rows_.defined(); }
  /// For the current stream, which waits for them; the host does not.
  Tensor take();

 private:
  struct Copy;
  c10::Device device_;
  Tensor rows_;
  std::unique_ptr<Copy> copy_;  // null on a CPU
};

/// The newest rows of an image on a device, row z at z modulo their number.
class RowRing {
 public:
  /// Of `length` rows, from row `first` of the source on. The source outlives this.
  RowRing(const RowSource& source, int64_t length, int64_t first, c10::Device device);
  /// (C,length,...) float32 with the rows in front of `end`, for the current stream.
  const Tensor& up_to(int64_t end);
  /// These are asked for next: to a device they begin to cross.
  void fetch(int64_t end);

 private:
  void read(int64_t end);
  const RowSource& source_;
  Tensor ring_;
  int64_t read_, held_;  // rows in front of these
  RowUpload upload_;
};

/// Finished rows on their way to the host, with the count of what is not finite among them.
class RowDownload {
 public:
  /// `take` is given rows of the host, in order, by the calls below.
  using Take = std::function<void(int64_t first, const std::vector<Tensor>& values, int64_t bad)>;
  explicit RowDownload(Take take);
  ~RowDownload();
  RowDownload(const RowDownload&) = delete;
  RowDownload& operator=(const RowDownload&) = delete;
  /// Hands on the rows that have come, and waits for the oldest where more than two are on their
  /// way. `bad`: (1) int64 of the device, not yet filled where work before is not yet done.
  void start(int64_t first, const std::vector<Tensor>& values, const Tensor& bad);
  /// Waits for all.
  void finish();

 private:
  struct Copy;
  void hand_on(std::size_t most);

  Take take_;
  std::deque<Copy> copies_;
};

}  // namespace cytra::inference
