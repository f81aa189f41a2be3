// AdjustContrastd, RandAdjustContrastd: gamma curves between the least and the greatest value.
// Source: monai.transforms.{AdjustContrastd, RandAdjustContrastd}.
#include "data/batch_transforms/per_batch.h"
#include "data/sample/per_key.h"

namespace cytra::data {
namespace {

/// Adjusts images (N,...), each with its own gamma: (N,1,...).
at::Tensor adjust(const at::Tensor& given,
                  const at::Tensor& gamma,
                  bool invert,
                  bool retain_stats) {
  const at::Tensor images = invert ? -given : given;
  std::vector<int64_t> dims;
  for (int64_t d = 1; d < images.dim(); ++d) dims.push_back(d);
  const auto mean = [&](const at::Tensor& x) { return x.mean(dims, /*keepdim=*/true); };
  const auto deviation = [&](const at::Tensor& x) {
    return x.std(dims, /*unbiased=*/true, /*keepdim=*/true);
  };
  const at::Tensor low = images.amin(dims, true), range = images.amax(dims, true) - low;
  at::Tensor result =
      ((images - low) / (range + 1e-7)).pow(gamma) * range + low;  // 1e-7: a constant image
  if (retain_stats) {
    result = result - mean(result);
    result = result / (deviation(result) + 1e-8) * deviation(images) + mean(images);
  }
  return invert ? -result : result;
}

at::Tensor adjust(const at::Tensor& image, double gamma, bool invert, bool retain_stats) {
  const at::Tensor one = at::scalar_tensor(gamma, at::kFloat);
  return adjust(image.unsqueeze(0), one, invert, retain_stats).squeeze(0);
}

template <class V, class Options>
void visit_both(V& v, Options& options) {
  v("invert_image", options.invert_image, "apply the curve to the negative image");
  v("retain_stats",
    options.retain_stats,
    "give the result the mean and deviation of the image before");
}

struct AdjustContrastd : KeyOptions {
  double gamma = 1;
  bool invert_image = false, retain_stats = false;
  void visit(auto& v) {
    KeyOptions::visit(v);
    v("gamma", gamma, "the exponent", config::required);
    visit_both(v, *this);
  }
  at::Tensor operator()(const at::Tensor& image) const {
    return adjust(image, gamma, invert_image, retain_stats);
  }
};
CYTRA_REGISTER(Transform, PerKey<AdjustContrastd>, "AdjustContrastd");

struct RandAdjustContrastd : RandKeyOptions {
  std::vector<double> gamma{0.5, 4.5};
  bool invert_image = false, retain_stats = false;
  void visit(auto& v) {
    RandKeyOptions::visit(v);
    v("gamma", gamma, "range of the exponent; one number above 0.5: 0.5..number");
    visit_both(v, *this);
  }
  void check() const {
    check_range("gamma", gamma, true);
    if (gamma.size() == 1 && gamma[0] <= 0.5)
      throw ConfigError("gamma: expected more than 0.5 when it is one number");
  }
  double draw_one(Rng& rng, at::IntArrayRef) const { return Range(gamma, 0.5).draw(rng); }
  auto draw(Rng& rng, const at::Tensor& first) const {
    return [this, drawn = draw_one(rng, first.sizes())](const at::Tensor& image) {
      return adjust(image, drawn, invert_image, retain_stats);
    };
  }
};
CYTRA_REGISTER(Transform, RandPerKey<RandAdjustContrastd>, "RandAdjustContrastd");

struct BatchContrast : RandAdjustContrastd {
  at::Tensor on_batch(const at::Tensor& images,
                      const std::vector<double>& drawn,
                      std::size_t) const {
    return adjust(images, per_sample(drawn, images), invert_image, retain_stats);
  }
};
CYTRA_REGISTER(BatchTransform, PerBatch<BatchContrast>, "RandAdjustContrastd");

}  // namespace
}  // namespace cytra::data
