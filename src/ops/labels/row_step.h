#pragma once
// Operations on an image of any size, whose rows along the outer axis come in order.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

namespace cytra::ops {

class RowStep {
 public:
  virtual ~RowStep() = default;
  /// Takes the next rows (C,n,...). Returns rows of the result (K,m,...) that are final, in order:
  /// often earlier ones, or none.
  virtual at::Tensor add(const at::Tensor& rows) = 0;
  /// Returns the next of the other rows, once all were added; an undefined tensor after the last.
  virtual at::Tensor rest() { return {}; }
  /// The memory in bytes that its work takes at times, beside rows that are kept.
  virtual int64_t work_bytes() const { return 0; }
};

/// Applies a function to rows together with those up to `halo` rows away.
class RowsWithHalo final : public RowStep {
 public:
  /// (C,n,...) -> (K,n,...).
  using Apply = std::function<at::Tensor(const at::Tensor& rows)>;
  /// `count`: the rows of the image.
  RowsWithHalo(Apply apply, int64_t halo, int64_t count)
      : apply_(std::move(apply)), halo_(halo), count_(count) {}
  at::Tensor add(const at::Tensor& rows) override;

 private:
  const Apply apply_;
  const int64_t halo_, count_;
  at::Tensor kept_;
  int64_t first_ = 0, given_ = 0;  // rows of the image: the first kept one, the next of the result
};

/// How many bytes of an image are kept in memory, not in a file: 512 MB, or an eighth of what is
/// left where that is more; 64 MB where memory is spared (base/memory.h).
int64_t kept_in_memory();
/// Room for values, which are not set: where they take more than `in_memory` bytes and `folder` is
/// not "", in a file there without a name, else in memory. The system writes what it has no memory
/// for to the file. Without `in_memory`: kept_in_memory(). Throws: IoError where the disk has no
/// room.
at::Tensor room_for(const std::vector<int64_t>& shape,
                    at::ScalarType type,
                    const std::string& folder,
                    std::optional<int64_t> in_memory = {});

/// Rows that are kept in such room, zeros at first.
class KeptRows {
 public:
  KeptRows() = default;
  /// Throws: IoError where the disk has no room.
  KeptRows(const std::vector<int64_t>& shape,
           at::ScalarType type,
           const std::string& folder,
           int64_t in_memory = kept_in_memory());
  /// Has the system read a part of the rows, of any strides, that are in a file and wanted next.
  void expect(const at::Tensor& part) const;
  /// Lets the system take the memory of rows that are in a file; they stay.
  void let_go() const;

  at::Tensor rows;

 private:
  bool is_file_ = false;
};

/// Keeps labels (1,n,...) until all are there. Memory: those of the image up to 512 MB, then a file
/// without a name.
class KeptLabels : public RowStep {
 public:
  /// `image`: ([Z,]Y,X); `folder`: as KeptRows.
  KeptLabels(std::vector<int64_t> image, std::string folder)
      : image_(std::move(image)), folder_(std::move(folder)) {}
  at::Tensor add(const at::Tensor& rows) final;
  at::Tensor rest() final;

 protected:
  /// Converts rows (n,...) int32 to those that are kept.
  virtual at::Tensor kept(const at::Tensor& rows) { return rows; }
  /// Is called when all are there; it may change them.
  virtual void change(at::Tensor& /*all*/) {}
  /// Converts rows that were kept to those of the result, in place.
  virtual void finish(at::Tensor& /*rows*/) const {}

 private:
  const std::vector<int64_t> image_;
  const std::string folder_;
  KeptRows all_;
  int64_t taken_ = 0, given_ = 0;
};

}  // namespace cytra::ops
