// GaussianSmoothd, GaussianSharpend and their random forms. Source: monai.transforms.{
// GaussianSmoothd, RandGaussianSmoothd, GaussianSharpend, RandGaussianSharpend}. Caution: MONAI's
// x is the first spatial axis, which is Z of a stack (Y of a plane), and its z is the last, X.
#include "data/batch_transforms/batch_grid.h"
#include "data/batch_transforms/per_batch.h"
#include "data/sample/gaussian_filter.h"
#include "data/sample/per_key.h"

namespace cytra::data {
namespace {

void visit_approx(auto& v, std::string& approx) {
  v("approx", approx, "how the kernel is computed", {"erf", "sampled", "scalespace"});
}

at::Tensor sharpen(const at::Tensor& image,
                   const std::vector<double>& sigma1,
                   const std::vector<double>& sigma2,
                   double alpha,
                   const std::string& approx) {
  const at::Tensor blurred = gaussian_filter(image, sigma1, approx);
  return blurred + (blurred - gaussian_filter(blurred, sigma2, approx)) * alpha;
}

struct GaussianSmoothd : KeyOptions {
  std::vector<double> sigma;
  std::string approx = "erf";
  void visit(auto& v) {
    KeyOptions::visit(v);
    v("sigma", sigma, "deviation in voxels, one or one per axis (Z, Y, X)", config::required);
    visit_approx(v, approx);
  }
  at::Tensor operator()(const at::Tensor& image) const {
    return gaussian_filter(image, sigma, approx);
  }
};
CYTRA_REGISTER(Transform, PerKey<GaussianSmoothd>, "GaussianSmoothd");

struct GaussianSharpend : KeyOptions {
  std::vector<double> sigma1{3}, sigma2{1};
  double alpha = 30;
  std::string approx = "erf";
  void visit(auto& v) {
    KeyOptions::visit(v);
    v("sigma1", sigma1, "deviation of the first blur in voxels, one or one per axis (Z, Y, X)");
    v("sigma2", sigma2, "of the second blur, likewise");
    v("alpha", alpha, "weight of what the second blur took away");
    visit_approx(v, approx);
  }
  void check() const {
    if (sigma1.empty() || sigma2.empty()) throw ConfigError("sigma1, sigma2: expected numbers");
  }
  at::Tensor operator()(const at::Tensor& image) const {
    return sharpen(image, sigma1, sigma2, alpha, approx);
  }
};
CYTRA_REGISTER(Transform, PerKey<GaussianSharpend>, "GaussianSharpend");

/// The sigmas of an image's axes, from those for x, y and z.
std::vector<double> for_axes(std::vector<double> sigma, const at::Tensor& image) {
  sigma.resize(static_cast<std::size_t>(image.dim() - 1));
  return sigma;
}

struct RandGaussianSmoothd : RandKeyOptions {
  std::vector<double> sigma_x{0.25, 1.5}, sigma_y{0.25, 1.5}, sigma_z{0.25, 1.5};
  std::string approx = "erf";
  void visit(auto& v) {
    RandKeyOptions::visit(v);
    v("sigma_x", sigma_x, "range of the deviation along the first axis: Z of stacks, Y of planes");
    v("sigma_y", sigma_y, "along the second axis: Y of stacks, X of planes");
    v("sigma_z", sigma_z, "along the third axis: X of stacks");
    visit_approx(v, approx);
  }
  void check() const {
    check_range("sigma_x", sigma_x, false);
    check_range("sigma_y", sigma_y, false);
    check_range("sigma_z", sigma_z, false);
  }
  std::vector<double> draw_one(Rng& rng, at::IntArrayRef) const {
    std::vector<double> sigma;
    for (const auto& range : {sigma_x, sigma_y, sigma_z})
      sigma.push_back(Range(range, 0).draw(rng));
    return sigma;
  }
  auto draw(Rng& rng, const at::Tensor& first) const {
    return [this, sigma = draw_one(rng, first.sizes())](const at::Tensor& image) {
      return gaussian_filter(image, for_axes(sigma, image), approx);
    };
  }
};
CYTRA_REGISTER(Transform, RandPerKey<RandGaussianSmoothd>, "RandGaussianSmoothd");

struct BatchSmooth : RandGaussianSmoothd {
  at::Tensor on_batch(const at::Tensor& images,
                      const std::vector<std::vector<double>>& drawn,
                      std::size_t) const {
    return spatial::filter_batch(images, drawn, approx);
  }
};
CYTRA_REGISTER(BatchTransform, PerBatch<BatchSmooth>, "RandGaussianSmoothd");

struct RandGaussianSharpend : RandKeyOptions {
  std::vector<double> sigma1_x{0.5, 1}, sigma1_y{0.5, 1}, sigma1_z{0.5, 1};
  std::vector<double> sigma2_x{0.5}, sigma2_y{0.5}, sigma2_z{0.5}, alpha{10, 30};
  std::string approx = "erf";
  void visit(auto& v) {
    RandKeyOptions::visit(v);
    v("sigma1_x",
      sigma1_x,
      "range of the first blur's deviation, first axis: Z of stacks, Y of "
      "planes");
    v("sigma1_y", sigma1_y, "second axis: Y of stacks, X of planes");
    v("sigma1_z", sigma1_z, "third axis: X of stacks");
    v("sigma2_x", sigma2_x, "of the second blur; one number: from there to what sigma1_x gave");
    v("sigma2_y", sigma2_y, "likewise, second axis");
    v("sigma2_z", sigma2_z, "likewise, third axis");
    v("alpha", alpha, "range of the weight of what the second blur took away");
    visit_approx(v, approx);
  }
  void check() const {
    check_range("sigma1_x", sigma1_x, false);
    check_range("sigma1_y", sigma1_y, false);
    check_range("sigma1_z", sigma1_z, false);
    check_range("sigma2_x", sigma2_x, true);
    check_range("sigma2_y", sigma2_y, true);
    check_range("sigma2_z", sigma2_z, true);
    check_range("alpha", alpha, false);
  }
  auto draw(Rng& rng, const at::Tensor&) const {
    std::vector<double> first, second;
    for (const auto& range : {sigma1_x, sigma1_y, sigma1_z})
      first.push_back(Range(range, 0).draw(rng));
    for (const auto& range : {sigma2_x, sigma2_y, sigma2_z}) {
      const double end = range.size() > 1 ? range[1] : first[second.size()];
      second.push_back(rng.uniform(range[0], end));
    }
    return [this, first, second, weight = Range(alpha, 0).draw(rng)](const at::Tensor& image) {
      return sharpen(image, for_axes(first, image), for_axes(second, image), weight, approx);
    };
  }
};
CYTRA_REGISTER(Transform, RandPerKey<RandGaussianSharpend>, "RandGaussianSharpend");

}  // namespace
}  // namespace cytra::data
