// RegressionDecoder: the result is the model's output, float32 channels in the target's units.
#include <ATen/ATen.h>

#include "base/error.h"
#include "config/registry.h"
#include "inference/decoders/decoder.h"
#include "ops/windows/sums.h"

namespace cytra::inference {
namespace {

class RegressionDecoder final : public Decoder {
 public:
  struct Options {
    std::vector<double> mean, std;
    void visit(auto& v) {
      v("mean",
        mean,
        "mean of the training's targets, per channel: what the model's 0 means; []: 0");
      v("std", std, "their standard deviation: what the model's 1 means beyond that; []: 1");
    }
    void check() const {
      if (mean.size() == std.size()) return;
      throw ConfigError("mean and std: {} and {} values, expected one of each per channel",
                        mean.size(),
                        std.size());
    }
  };
  explicit RegressionDecoder(const Options& options)
      : mean_(at::tensor(options.mean, at::kFloat)), std_(at::tensor(options.std, at::kFloat)) {}

  at::Tensor in_units(const at::Tensor& output) const override {
    if (mean_.numel() == 0) return output;
    if (mean_.numel() != output.size(1)) {
      throw ConfigError(
          "decoder: mean and std of {} channels, the model has {}", mean_.numel(), output.size(1));
    }
    const auto by_channel = [&](const at::Tensor& values) {
      std::vector<int64_t> shape(static_cast<std::size_t>(output.dim()), 1);
      shape[1] = -1;
      return values.view(shape).to(output.device());
    };
    return output.to(at::kFloat) * by_channel(std_) + by_channel(mean_);
  }
  std::vector<std::string> forms() const override { return {"value"}; }
  bool is_labels(const std::string&) const override { return false; }
  ops::Finish finish(const std::string&, double) const override { return {}; }

 private:
  at::Tensor mean_, std_;
};
CYTRA_REGISTER(Decoder, RegressionDecoder, "RegressionDecoder");

}  // namespace
}  // namespace cytra::inference
