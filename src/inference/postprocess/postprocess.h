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
class RowStep;  // ops/labels/row_step.h
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
  /// Does apply() on values that come by rows; null: it needs the whole image. `form`: the result
  /// before the step, without values, and `shape` theirs, (C,[D,]H,W); both become those after it.
  /// `folder`: as ops::KeptRows. Throws: as apply(); exceptions of the step have no name in
  /// front.
  virtual std::unique_ptr<ops::RowStep> by_rows(Result& form,
                                                std::vector<int64_t>& shape,
                                                const std::string& folder) const;
  /// Whether it makes objects of a mask.
  virtual bool makes_objects() const { return false; }
};

using PostprocessSteps = std::vector<std::shared_ptr<Postprocess>>;

/// Makes the steps of a list in a configuration; none for null. Throws: ConfigError.
PostprocessSteps make_postprocess(const config::Node& list);
/// Does a part of a step. The message of an exception gets the step's name in front.
void apply_named(const Postprocess& step, const std::function<void()>& part);
/// Applies all steps in order, each by apply_named().
void apply_all(const PostprocessSteps& steps, Result& result);

}  // namespace cytra::inference
