// NormalizeIntensityd: (x - mean) / deviation. Source: monai.transforms.NormalizeIntensityd (population deviation).
#include <ATen/ATen.h>

#include "config/registry.h"
#include "data/sample.h"

namespace cytra::data {
namespace {

class NormalizeIntensityd final : public Transform {
 public:
  struct Options {
    std::vector<std::string> keys;
    std::optional<double> subtrahend, divisor;
    bool nonzero = false, channel_wise = false;
    template <class V>
    void visit(V& v) {
      v("keys", keys, "samples' keys to normalise");
      v("subtrahend", subtrahend, "subtract this; default: the mean");
      v("divisor", divisor, "divide by this; default: the standard deviation, or 1 when that is 0");
      v("nonzero", nonzero, "leave zeros as they are and out of the statistics");
      v("channel_wise", channel_wise, "each channel by itself");
    }
  };
  explicit NormalizeIntensityd(const Options& options) : options_(options) {}

  void apply(Sample& sample, Rng&) const override {
    for (const std::string& key : options_.keys) {
      at::Tensor& image = sample.at(key);  // (C,[D,]H,W)
      at::Tensor result = image.clone();
      if (options_.channel_wise) {
        for (int64_t c = 0; c < result.size(0); ++c) normalize(result[c]);
      } else {
        normalize(result);
      }
      image = result;
    }
  }

 private:
  void normalize(at::Tensor image) const {
    const at::Tensor mask = options_.nonzero ? image.ne(0) : at::Tensor();
    const at::Tensor values = options_.nonzero ? image.masked_select(mask) : image;
    if (values.numel() == 0) return;
    // The statistics in double: a float sum over 10^8 voxels is off by more than the peer's tolerance.
    const double mean = options_.subtrahend ? *options_.subtrahend : values.mean(at::kDouble).item<double>();
    double deviation = options_.divisor
                           ? *options_.divisor
                           : std::sqrt((values.to(at::kDouble) - values.mean(at::kDouble)).square().mean().item<double>());
    if (deviation == 0) deviation = 1;
    if (options_.nonzero) {
      image.copy_(at::where(mask, (image - mean) / deviation, image));
    } else {
      image.sub_(mean).div_(deviation);
    }
  }
  Options options_;
};
CYTRA_REGISTER(Transform, NormalizeIntensityd, "NormalizeIntensityd");

}  // namespace
}  // namespace cytra::data
