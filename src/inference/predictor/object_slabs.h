#pragma once
// Makes objects of an image that is too large for memory: its rows come in slabs, but steps get
// whole objects.
#include <cstdint>

#include <ATen/core/Tensor.h>

#include "inference/postprocess/postprocess.h"

namespace cytra::inference {

/// Keeps rows back until every object in them has ended (touching voxels are one object here), and
/// then applies the steps. ConnectedComponents and Watershed so make the same objects as from the
/// whole image, with other numbers. (Where floods from markers of one height meet, a voxel may
/// belong to the other one.) Memory: the rows of the tallest object.
class ObjectSlabs {
 public:
  /// An object of more rows than `most_rows` is cut there.
  ObjectSlabs(PostprocessSteps steps, const io::Geometry& geometry, int64_t most_rows = INT64_MAX);
  /// Adds the next rows of labels ([D,]H,W), one or more. Returns int32 rows that are final, in
  /// order; often earlier rows, or none.
  at::Tensor add(const at::Tensor& rows);
  /// Returns the other rows.
  at::Tensor finish();
  /// The largest number given so far.
  int64_t count() const { return count_; }

 private:
  int64_t number_ended(bool all);
  at::Tensor take(int64_t rows);

  PostprocessSteps steps_;
  io::Geometry geometry_;
  int64_t most_rows_, count_ = 0;
  bool is_first_ = true;          // the rows kept back begin with the image's first
  at::Tensor pending_, objects_;  // rows kept back: labels that have not ended yet, and ended
                                  // objects
};

}  // namespace cytra::inference
