#pragma once
// Labels of an image of any size: its values come by rows, labels are made of blocks that overlap.
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "ops/labels/row_step.h"
#include "ops/labels/volume.h"

namespace cytra::ops {

/// Makes labels of the values of blocks, and joins them by their overlap. An object belongs to the
/// block in whose inner part its box begins; a block also sees what lies `before` and `after` that
/// part, so the labels are those of the whole image as long as no object, nor what decides on it,
/// reaches farther than that; they are then numbered by their first voxels. Longer objects are
/// joined where their parts overlap by half. An image that fits into a block is labelled as a
/// whole. Memory: the rows of a block's height.
class LabelBlocks final : public RowStep {
 public:
  /// Along each axis: voxels of a block, and of these before and after its inner part.
  struct Sizes {
    std::vector<int64_t> block, before, after;
    int64_t in_memory = INT64_MAX;  // bytes of kept rows, at most kept_in_memory()
  };
  /// (C,[Z,]Y,X) float32 -> ([Z,]Y,X) int32: 0, and numbers.
  using Make = std::function<at::Tensor(const at::Tensor& values, const Part& part)>;
  /// `image`: ([Z,]Y,X). `folder`: as KeptRows. `bytes_per_voxel`: of a block, that its values and
  /// `make` take.
  LabelBlocks(Make make,
              std::vector<int64_t> image,
              std::string folder = "",
              int64_t bytes_per_voxel = 0);
  LabelBlocks(Make make,
              std::vector<int64_t> image,
              std::string folder,
              const Sizes& sizes,
              int64_t bytes_per_voxel = 0);
  ~LabelBlocks() override;
  LabelBlocks(const LabelBlocks&) = delete;
  LabelBlocks& operator=(const LabelBlocks&) = delete;

  /// Returns labels (1,m,...) int32, of a band of blocks as many rows as come. Throws: what `make`
  /// throws; DataError for more than 2147483647 objects; IoError where the file has no room.
  at::Tensor add(const at::Tensor& rows) override;
  at::Tensor rest() override;
  int64_t work_bytes() const override;

 private:
  struct Range;
  struct Column;                     // the blocks at one place across the rows
  using Block = std::vector<Range>;  // along each axis
  std::vector<at::Tensor> parts_of(const at::Tensor& kept, const Block& block) const;
  void allocate(const at::Tensor& rows);
  void keep(const at::Tensor& rows);
  at::Tensor whole();
  void band();
  at::Tensor give(int64_t count);
  at::Tensor values_of(const Column& column) const;
  void label(const Column& column);
  std::vector<int32_t> objects_of(const at::Tensor& found,
                                  const at::Tensor& known,
                                  const Block& block);

  const Make make_;
  const std::vector<int64_t> image_;
  const std::string folder_;
  const Sizes sizes_;
  const int64_t bytes_per_voxel_;
  std::vector<std::vector<Range>> ranges_;  // one list for each axis
  // Rows that are kept: row r is at r modulo their number. Each column has values of its own, so
  // that a block is one or two runs of a file.
  std::vector<Column> columns_;
  KeptRows values_, labels_;
  int64_t taken_ = 0, ready_ = 0, given_ = 0;  // rows: of values; of final labels; of those given
  int64_t joined_ = 0;
  std::size_t band_ = 0;  // the blocks whose rows come
  int32_t count_ = 0;
  std::vector<bool> is_open_{false};              // whether an object goes on beyond its block
  std::vector<int32_t> numbers_{0};               // the final ones of objects
  std::vector<std::pair<int64_t, int32_t>> new_;  // first voxels and objects of band_
};

/// Labels of values (C,[Z,]Y,X) by LabelBlocks.
at::Tensor labels_by_blocks(const LabelBlocks::Make& make, const at::Tensor& values);

}  // namespace cytra::ops
