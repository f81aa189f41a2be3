#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "io/objects/polygons.h"

namespace cytra::inference {

/// The class of each object by its number, [0]: 0; null: objects have none.
using ObjectClasses = std::shared_ptr<const std::vector<int32_t>>;

/// Traces the outlines of labels whose rows come in order.
class ObjectOutlines {
 public:
  /// Shape: rows (n,X), or planes (n,Y,X), of whole numbers.
  void add(const at::Tensor& rows);
  /// Returns the outlines after the last rows.
  std::vector<io::Polygon> finish();

 private:
  io::LabelTracer tracer_;
  bool is_plane_ = false;  // which is open
};

/// The objects of one channel of a result: objects that a step has numbered, else the connected
/// components of its classes.
class ResultObjects {
 public:
  /// Shape: labels ([D,]H,W) int32. `first`: the number added to its labels, as those of a channel
  /// follow those of the channel before. `classes`: by label; empty: all are of class `channel`.
  ResultObjects(at::Tensor labels, int64_t first, std::vector<int32_t> classes, int64_t channel);
  const at::Tensor& labels() const { return labels_; }
  int64_t first() const { return first_; }
  /// The class of an object by its own label, without first().
  int64_t class_of(int64_t label) const;
  /// The outlines: one for each object, or for each plane of an object, with first() added to the
  /// labels; made at the first call.
  const std::vector<io::Polygon>& outlines() const;

 private:
  at::Tensor labels_;
  int64_t first_, channel_;
  std::vector<int32_t> classes_;
  mutable std::optional<std::vector<io::Polygon>> outlines_;
};

}  // namespace cytra::inference
