// NormalizeIntensityd: (x - mean) / deviation. Source: monai.transforms.NormalizeIntensityd
// (population deviation).
#include <ATen/ATen.h>

#include "base/error.h"
#include "config/registry.h"
#include "data/sample.h"

namespace cytra::data {
namespace {

class NormalizeIntensityd final : public Transform {
 public:
  struct Options {
    std::vector<std::string> keys;
    std::vector<double> subtrahend, divisor;
    bool nonzero = false, channel_wise = false;
    template <class V>
    void visit(V& v) {
      v("keys", keys, "samples' keys to normalise", config::required);
      v("subtrahend",
        subtrahend,
        "subtract this, one number or one per channel (channel_wise); default: the mean");
      v("divisor",
        divisor,
        "divide by this, likewise; default: the standard deviation, or 1 when that is 0");
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
        for (int64_t c = 0; c < result.size(0); ++c)
          normalize(result[c], static_cast<std::size_t>(c));
      } else {
        normalize(result, 0);
      }
      image = result;
    }
  }

 private:
  void normalize(at::Tensor image, std::size_t channel) const {
    const at::Tensor mask = options_.nonzero ? image.ne(0) : at::Tensor();
    const at::Tensor values = options_.nonzero ? image.masked_select(mask) : image;
    if (values.numel() == 0) return;
    // The statistics in double: a float sum over 10^8 voxels is off by more than the peer's
    // tolerance.
    const at::Tensor exact = values.to(at::kDouble);
    const double mean = given(options_.subtrahend, channel).value_or(exact.mean().item<double>());
    double deviation =
        given(options_.divisor, channel).value_or(exact.std(/*unbiased=*/false).item<double>());
    if (deviation == 0) deviation = 1;
    if (options_.nonzero) {
      image.copy_(at::where(mask, (image - mean) / deviation, image));
    } else {
      image.sub_(mean).div_(deviation);
    }
  }
  static std::optional<double> given(const std::vector<double>& numbers, std::size_t channel) {
    if (numbers.empty()) return std::nullopt;
    if (numbers.size() > 1 && channel >= numbers.size()) {
      throw DataError(
          "NormalizeIntensityd: the image has more channels than subtrahend or divisor have "
          "numbers");
    }
    return numbers[numbers.size() == 1 ? 0 : channel];
  }
  Options options_;
};
CYTRA_REGISTER(Transform, NormalizeIntensityd, "NormalizeIntensityd");

}  // namespace
}  // namespace cytra::data
