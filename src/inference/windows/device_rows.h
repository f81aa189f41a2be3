#pragma once
// Copies rows between the host and a device on streams of their own: the next rows go to the
// device, and finished ones to the host, while windows are computed.
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include "base/tensor_fwd.h"
#include "inference/windows/slabs.h"

namespace cytra::inference {

/// Whether all values are finite, for each of the images (N,...). Waits for the device once.
std::vector<bool> are_finite(const Tensor& images);

/// Copies rows to a device; on a CPU they are not copied.
class RowUpload {
 public:
  explicit RowUpload(c10::Device device);
  ~RowUpload();
  RowUpload& operator=(RowUpload&&) = delete;
  /// Starts a copy; earlier rows must have been taken. Shape: (C,n,...), on the host.
  void start(const Tensor& rows);
  bool is_under_way() const { return rows_.defined(); }
  /// Returns the rows for the current stream, which waits for them; the host does not wait.
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
  /// Keeps `length` rows, from row `first` of the source on; on a CPU in a file without a name in
  /// `folder` ("": in memory). The source must outlive this.
  RowRing(const RowSource& source,
          int64_t length,
          int64_t first,
          c10::Device device,
          const std::string& folder);
  /// The rows before `end`, in (C,length,...) float32, for the current stream.
  const Tensor& up_to(int64_t end);
  /// Begins to copy the rows before `end`, which are asked for next, to the device.
  void fetch(int64_t end);

 private:
  void read(int64_t end);
  const RowSource& source_;
  Tensor ring_;
  int64_t read_, held_;   // the end of the rows that were read, and of those held
  int64_t most_at_once_;  // rows that are read at once
  RowUpload upload_;
};

/// Copies finished rows to the host, with the count of values that are not finite among them.
class RowDownload {
 public:
  /// Receives rows on the host, in order; called by the functions below.
  using Take = std::function<void(int64_t first, const std::vector<Tensor>& values, int64_t bad)>;
  explicit RowDownload(Take take);
  ~RowDownload();
  RowDownload& operator=(RowDownload&&) = delete;
  /// Starts a copy. Passes on the copies that are complete, and waits for the oldest where more
  /// than two are under way. `bad`: (1) int64 on the device, which earlier work may not have
  /// filled yet.
  void start(int64_t first, const std::vector<Tensor>& values, const Tensor& bad);
  /// Waits for all copies.
  void finish();

 private:
  struct Copy;
  void hand_on(std::size_t most);

  Take take_;
  std::deque<Copy> copies_;
};

}  // namespace cytra::inference
