#pragma once
// Objects of an image that is too large for memory: its rows come by slabs, and steps see objects
// whole.
#include <cstdint>

#include <ATen/core/Tensor.h>

#include "inference/postprocess.h"

namespace cytra::inference {

/// Keeps rows back until every object in them has ended (what touches is one object here), and
/// applies steps to those that have: so ConnectedComponents and Watershed make the objects that
/// they make of the whole image, under other numbers. (Where floods from markers of one height
/// meet, a voxel may fall to the other side.) Memory: the rows of the tallest object.
class ObjectSlabs {
 public:
  /// An object of more rows than `most_rows` is cut there.
  ObjectSlabs(PostprocessSteps steps, const io::Geometry& geometry, int64_t most_rows = INT64_MAX);
  /// The next rows of labels ([D,]H,W), one or more -> int32 rows that are final, in order; often
  /// others, or none.
  at::Tensor add(const at::Tensor& rows);
  /// The rest.
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
  at::Tensor pending_, objects_;  // rows kept back: what has not ended yet, and what has
};

}  // namespace cytra::inference
