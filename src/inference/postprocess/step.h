#pragma once
// The common code of the steps.
#include <algorithm>
#include <vector>

#include <ATen/ATen.h>

#include "base/error.h"
#include "base/lists.h"
#include "config/registry.h"
#include "inference/postprocess/postprocess.h"
#include "ops/labels/label_blocks.h"

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
  std::unique_ptr<ops::LabelBlocks> by_rows(const std::vector<int64_t>& image,
                                            const std::string& folder) const override {
    if constexpr (requires { options_.make(); })
      return std::make_unique<ops::LabelBlocks>(options_.make(), image, folder);
    return nullptr;
  }
  bool works_by_objects() const override {
    return requires {
      Options::kWorksByObjects;
    };
  }

 private:
  Options options_;
};

/// An operation that makes labels ([Z,]Y,X) of all channels of a model's output, block by block.
/// Those of planes are numbered on from plane to plane.
template <class Operation>
struct ToLabels : Operation {
  ops::LabelBlocks::Make make() const {
    return [operation = static_cast<const Operation&>(*this)](
               const at::Tensor& values, const ops::Part& part) { return operation(values, part); };
  }
  void apply(Result& result) const {
    expect_scores(result);
    std::vector<at::Tensor> planes;
    int32_t last = 0;
    if (result.plane_axis >= 0) {
      for (const at::Tensor& plane : result.values.unbind(1 + result.plane_axis)) {
        at::Tensor& labels = planes.emplace_back(ops::labels_by_blocks(make(), plane));
        labels = at::where(labels != 0, labels + last, labels);
        last = std::max(last, labels.max().template item<int32_t>());
      }
    }
    result.values = planes.empty() ? ops::labels_by_blocks(make(), result.values)
                                   : at::stack(planes, result.plane_axis);
    result.values = result.values.unsqueeze(0);
    result.is_labels = result.is_objects = true;
  }
};

/// An operation of ops/labels/ on labels.
template <class Operation>
struct OnLabels : Operation {
  void apply(Result& result) const {
    expect_labels(result);
    result.values = (*this)(result.values);
  }
};

}  // namespace cytra::inference
