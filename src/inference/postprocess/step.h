#pragma once
// The common code of the steps.
#include <vector>

#include <ATen/ATen.h>

#include "base/error.h"
#include "config/registry.h"
#include "inference/postprocess/postprocess.h"

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

/// The distance between voxels along ([Z,]Y,X) in um; empty where it is unknown.
std::vector<double> spacing_of(const Result& result);

/// Applies change([Z,]Y,X) to each channel by itself.
template <class Change>
void for_channels(Result& result, const Change& change) {
  std::vector<at::Tensor> channels;
  for (const at::Tensor& channel : result.values.unbind(0)) channels.push_back(change(channel));
  result.values = at::stack(channels);
}

/// A step by an operation that makes labels ([Z,]Y,X) of all channels of a model's output.
template <class Operation>
class ToLabels final : public Postprocess {
 public:
  using Options = Operation;
  explicit ToLabels(const Options& options) : options_(options) {}
  void apply(Result& result) const override {
    expect_scores(result);
    result.values = options_(result.values).unsqueeze(0);
    result.is_labels = result.is_objects = true;
  }

 private:
  Options options_;
};

/// A step by an operation of ops/labels/ on labels.
template <class Operation>
class OnLabels final : public Postprocess {
 public:
  using Options = Operation;
  explicit OnLabels(const Options& options) : options_(options) {}
  void apply(Result& result) const override {
    expect_labels(result);
    result.values = options_(result.values);
  }

 private:
  Options options_;
};

}  // namespace cytra::inference
