// NormalizeIntensityd: (x - mean) / deviation. Source: monai.transforms.NormalizeIntensityd
// (population deviation).
#include "data/transforms/per_key.h"

namespace cytra::data {
namespace {

struct NormalizeIntensityd : KeyOptions {
  std::vector<double> subtrahend, divisor;
  bool nonzero = false, channel_wise = false;
  template <class V>
  void visit(V& v) {
    KeyOptions::visit(v);
    visit_dtype(v);
    v("subtrahend",
      subtrahend,
      "subtract this, one number or one per channel (channel_wise); default: the mean");
    v("divisor",
      divisor,
      "divide by this, likewise; default: the standard deviation, or 1 when that is 0");
    v("nonzero", nonzero, "leave zeros as they are and out of the statistics");
    v("channel_wise", channel_wise, "each channel by itself");
  }
  void check() const {
    if (!channel_wise && (subtrahend.size() > 1 || divisor.size() > 1))
      throw ConfigError("subtrahend, divisor: expected one number unless channel_wise is true");
  }

  at::Tensor operator()(const at::Tensor& image) const {
    std::size_t channel = 0;
    for (const std::size_t numbers : {subtrahend.size(), divisor.size()}) {
      if (numbers > 1 && static_cast<int64_t>(numbers) != image.size(0)) {
        throw DataError(std::to_string(image.size(0)) + " channels, expected " +
                        std::to_string(numbers) + " as subtrahend or divisor have numbers");
      }
    }
    return by_channel(
        image, channel_wise, [&](const at::Tensor& part) { return normalize(part, channel++); });
  }

 private:
  at::Tensor normalize(const at::Tensor& part, std::size_t channel) const {
    const at::Tensor mask = nonzero ? part.ne(0) : at::Tensor();
    const at::Tensor values = nonzero ? part.masked_select(mask) : part;
    if (values.numel() == 0) return part;
    double mean = given(subtrahend, channel), deviation = given(divisor, channel);
    if (subtrahend.empty() || divisor.empty()) {
      // In double: a float sum over 10^8 voxels is off by more than the peer's tolerance.
      const at::Tensor exact = values.to(at::kDouble);
      if (subtrahend.empty()) mean = exact.mean().item<double>();
      if (divisor.empty()) deviation = exact.std(/*unbiased=*/false).item<double>();
    }
    const at::Tensor result = (part - mean).div_(deviation == 0 ? 1 : deviation);
    return nonzero ? at::where(mask, result, part) : result;
  }
  static double given(const std::vector<double>& numbers, std::size_t channel) {
    return numbers.empty() ? 0 : numbers[numbers.size() == 1 ? 0 : channel];
  }
};
const Registered<Transform, PerKey<NormalizeIntensityd>> registered("NormalizeIntensityd",
                                                                    __FILE__);

}  // namespace
}  // namespace cytra::data
