// AdjustContrastd, RandAdjustContrastd: gamma curves between the least and the greatest value.
// Source: monai.transforms.{AdjustContrastd, RandAdjustContrastd}.
#include "data/transforms/per_key.h"

namespace cytra::data {
namespace {

at::Tensor adjust(const at::Tensor& given, double gamma, bool invert, bool retain_stats) {
  const at::Tensor image = invert ? -given : given;
  const at::Tensor low = image.min(), range = image.max() - low;
  at::Tensor result =
      ((image - low) / (range + 1e-7)).pow(gamma) * range + low;  // 1e-7: a constant image
  if (retain_stats) {
    result = result - result.mean();
    result = result / (result.std() + 1e-8) * image.std() + image.mean();
  }
  return invert ? -result : result;
}

template <class V, class Options>
void visit_both(V& v, Options& options) {
  v("invert_image", options.invert_image, "curve the negative image");
  v("retain_stats", options.retain_stats, "give the result the mean and deviation there were");
}

struct AdjustContrastd : KeyOptions {
  double gamma = 1;
  bool invert_image = false, retain_stats = false;
  template <class V>
  void visit(V& v) {
    KeyOptions::visit(v);
    v("gamma", gamma, "the exponent", config::required);
    visit_both(v, *this);
  }
  at::Tensor operator()(const at::Tensor& image) const {
    return adjust(image, gamma, invert_image, retain_stats);
  }
};
const Registered<Transform, PerKey<AdjustContrastd>> registered_adjust("AdjustContrastd", __FILE__);

struct RandAdjustContrastd : RandKeyOptions {
  std::vector<double> gamma{0.5, 4.5};
  bool invert_image = false, retain_stats = false;
  template <class V>
  void visit(V& v) {
    RandKeyOptions::visit(v);
    v("gamma", gamma, "range of the exponent; one number above 0.5: 0.5..number");
    visit_both(v, *this);
  }
  void check() const {
    check_range("gamma", gamma, true);
    if (gamma.size() == 1 && gamma[0] <= 0.5)
      throw ConfigError("gamma: expected more than 0.5 when it is one number");
  }
  auto draw(Rng& rng, const at::Tensor&) const {
    return [this, drawn = Range(gamma, 0.5).draw(rng)](const at::Tensor& image) {
      return adjust(image, drawn, invert_image, retain_stats);
    };
  }
};
const Registered<Transform, RandPerKey<RandAdjustContrastd>> registered_rand("RandAdjustContrastd",
                                                                             __FILE__);

}  // namespace
}  // namespace cytra::data
