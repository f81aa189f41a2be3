#pragma once
// The common code of the steps.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>

#include "base/error.h"
#include "base/lists.h"
#include "inference/postprocess/postprocess.h"
#include "ops/labels/label_blocks.h"
#include "ops/labels/row_step.h"

namespace cytra::inference {

/// Checks the result. Throws: ConfigError unless it is labels.
inline void expect_labels(const Result& result) {
  if (!result.is_labels) {
    throw ConfigError(
        "expects labels, gets a model's scores; put AsDiscrete or Threshold before it, or "
        "predict.save=mask");
  }
}
/// Checks the result. Throws: ConfigError unless it is scores.
inline void expect_scores(const Result& result) {
  if (result.is_labels)
    throw ConfigError("expects scores, gets labels; predict.save=logits or probability gives them");
}

/// Applies change([Z,]Y,X) to each channel by itself.
void for_channels(Result& result, const auto& change) {
  result.values = at::stack(mapped(result.values.unbind(0), change));
}

/// A step by its options, which apply(Result&) themselves.
template <class Operation>
class Step final : public Postprocess {
 public:
  using Options = Operation;
  explicit Step(const Options& options) : options_(options) {}
  void apply(Result& result) const override { options_.apply(result); }
  std::unique_ptr<ops::RowStep> by_rows(Result& form,
                                        std::vector<int64_t>& shape,
                                        const std::string& folder) const override {
    if constexpr (requires { options_.by_rows(form, shape, folder); })
      return options_.by_rows(form, shape, folder);
    return nullptr;
  }
  bool makes_objects() const override {
    return requires {
      Options::kMakesObjects;
    };
  }

 private:
  Options options_;
};

/// The sides ([D,]H,W) of values (C,[D,]H,W).
inline std::vector<int64_t> image_of(const std::vector<int64_t>& shape) {
  return {shape.begin() + 1, shape.end()};
}

/// Applies a function (C,H,W) -> (H,W) to each of `count` planes, in order.
std::unique_ptr<ops::RowStep> each_plane(const auto& apply, int64_t count) {
  const auto to_rows = [apply](const at::Tensor& rows) {
    return at::stack(mapped(rows.unbind(1), apply)).unsqueeze(0);
  };
  return std::make_unique<ops::RowsWithHalo>(to_rows, 0, count);
}

/// An operation that makes labels ([Z,]Y,X) of all channels of a model's output, block by block.
/// Those of planes are numbered on from plane to plane.
template <class Operation>
struct ToLabels : Operation {
  void apply(Result& result) const {
    expect_scores(result);
    result.values =
        result.plane_axis < 0
            ? ops::labels_by_blocks(make(), result.values)
            : at::stack(mapped(result.values.unbind(1 + result.plane_axis), by_planes()),
                        result.plane_axis);
    result.values = result.values.unsqueeze(0);
    result.is_labels = result.is_objects = true;
  }
  std::unique_ptr<ops::RowStep> by_rows(Result& form,
                                        std::vector<int64_t>& shape,
                                        const std::string& folder) const {
    expect_scores(form);
    if (form.plane_axis > 0) return nullptr;
    form.is_labels = form.is_objects = true;
    const int64_t bytes = Operation::kBytesPerVoxel + 4 * std::exchange(shape[0], 1);
    if (form.plane_axis == 0) return each_plane(by_planes(), shape[1]);
    return std::make_unique<ops::LabelBlocks>(make(), image_of(shape), folder, bytes);
  }

 private:
  ops::LabelBlocks::Make make() const {
    return [operation = static_cast<const Operation&>(*this)](
               const at::Tensor& values, const ops::Part& part) { return operation(values, part); };
  }
  /// (C,H,W) -> (H,W)
  auto by_planes() const {
    return [make = make(), last = std::make_shared<int32_t>(0)](const at::Tensor& plane) {
      at::Tensor labels = ops::labels_by_blocks(make, plane);
      labels = at::where(labels != 0, labels + *last, labels);
      *last = std::max(*last, labels.max().template item<int32_t>());
      return labels;
    };
  }
};

/// An operation of ops/labels/ on labels.
template <class Operation>
struct OnLabels : Operation {
  void apply(Result& result) const {
    expect_labels(result);
    result.values = (*this)(result.values);
  }
  std::unique_ptr<ops::RowStep> by_rows(Result& form,
                                        std::vector<int64_t>& shape,
                                        const std::string& folder) const {
    expect_labels(form);
    return shape[0] == 1 ? Operation::row_step(image_of(shape), folder) : nullptr;
  }
};

/// Applies an operation by rows, whose result depends on rows up to `halo` away.
std::unique_ptr<ops::RowStep> rows_with_halo(const auto& operation,
                                             int64_t halo,
                                             Result& form,
                                             std::vector<int64_t>& shape) {
  std::vector<int64_t> voxel(shape.size(), 1);
  voxel[0] = shape[0];
  const auto apply = [operation, form](const at::Tensor& rows) {
    Result result = form;
    result.values = rows;
    operation.apply(result);
    return result.values;
  };
  form.values = at::zeros(voxel, form.is_labels ? at::kInt : at::kFloat);
  operation.apply(form);
  shape[0] = std::exchange(form.values, {}).size(0);
  return std::make_unique<ops::RowsWithHalo>(apply, halo, shape[1]);
}

}  // namespace cytra::inference
