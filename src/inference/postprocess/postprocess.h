#pragma once
// Postprocessing of a model's results before they are written: predict.postprocess lists the
// steps.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "base/tensor_fwd.h"
#include "config/registry.h"
#include "io/image.h"

namespace cytra::ops {
class LabelBlocks;  // ops/labels/label_blocks.h
}

namespace cytra::inference {

/// The result of one image.
struct Result {
  Tensor values;           // (C,[D,]H,W) on the CPU: float32, or int32 of labels
  bool is_labels = false;  // classes or objects by number, 0 for none; a channel may be a mask
  io::Geometry geometry;
  bool is_objects = false;  // labels number objects, not classes
  int64_t plane_axis = -1;  // the axis, 0 to 2, along which planes were predicted one by one
  /// Makes the image before the transforms of its intensities, (C,[D,]H,W) float32, in the voxels
  /// of `values`; empty: it is not known.
  std::function<Tensor()> input;
};

/// A step, with the names and arguments of MONAI's post transforms where they exist. A new step is
/// a file in postprocess/. Thread: apply() must be const-safe.
struct Postprocess {
  static constexpr const char* kKind = "postprocess step";
  virtual ~Postprocess() = default;
  std::string name;  // for messages, e.g. "FillHoles"
  /// Changes the result. Throws: DataError, ConfigError for a result that it is not made for.
  virtual void apply(Result& result) const = 0;
  /// Makes the labels of apply() from values that come by rows; null: it makes no labels of them.
  /// `image`: ([D,]H,W); `folder`: as ops::LabelBlocks. Its exceptions have no name in front.
  virtual std::unique_ptr<ops::LabelBlocks> by_rows(const std::vector<int64_t>& /*image*/,
                                                    const std::string& /*folder*/) const;
  /// Whether it processes and numbers each object by itself: then an image may be larger than
  /// memory (object_slabs.h).
  virtual bool works_by_objects() const { return false; }
};

using PostprocessSteps = std::vector<std::shared_ptr<Postprocess>>;

/// Makes the steps of a list in a configuration; none for null. Throws: ConfigError.
PostprocessSteps make_postprocess(const config::Node& list);
/// Does a part of a step. The message of an exception gets the step's name in front.
void apply_named(const Postprocess& step, const std::function<void()>& part);
/// Applies all steps in order, each by apply_named().
void apply_all(const PostprocessSteps& steps, Result& result);

}  // namespace cytra::inference
