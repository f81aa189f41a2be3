#include "data/sample/gaussian_filter.h"

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>

#include "base/error.h"

namespace cytra::data {
namespace {

at::Tensor convolve(const at::Tensor& image, int64_t axis, const std::vector<float>& kernel) {
  const at::Tensor in = image.contiguous();
  at::Tensor out = at::zeros_like(in);
  const auto tail = static_cast<int64_t>(kernel.size() / 2);
  const int64_t length = in.size(axis), inner = in.stride(axis), block = length * inner;
  for (int64_t start = 0; start < in.numel(); start += block) {
    const float* from = in.const_data_ptr<float>() + start;
    float* to = out.mutable_data_ptr<float>() + start;
    for (int64_t shift = std::max(-tail, 1 - length); shift <= std::min(tail, length - 1);
         ++shift) {
      // All voxels that have this neighbour are contiguous.
      const float weight = kernel[static_cast<std::size_t>(shift + tail)];
      const int64_t begin = std::max<int64_t>(0, -shift) * inner;
      const int64_t end = std::min(length, length - shift) * inner;
      for (int64_t i = begin; i < end; ++i) to[i] += weight * from[i + shift * inner];
    }
  }
  return out;
}

}  // namespace

std::vector<float> gaussian_kernel(double sigma, const std::string& approx, double truncated) {
  sigma = std::abs(sigma);
  const auto tail = static_cast<int64_t>(std::max(sigma * truncated, 0.5) + 0.5);
  std::vector<float> kernel;
  for (int64_t i = -tail; i <= tail; ++i) {
    const auto x = static_cast<double>(i);
    double tap = 0;
    if (approx == "erf") {
      const double t = std::sqrt(0.5) / sigma;
      tap = 0.5 * (std::erf(t * (x + 0.5)) - std::erf(t * (x - 0.5)));
    } else if (approx == "sampled") {
      tap = std::exp(-0.5 * x * x / (sigma * sigma)) / (std::sqrt(2 * M_PI) * sigma);
    } else {
      tap = std::cyl_bessel_i(std::abs(x), sigma * sigma) * std::exp(-sigma * sigma);
    }
    kernel.push_back(static_cast<float>(tap));
  }
  return kernel;
}

at::Tensor gaussian_filter(const at::Tensor& image,
                           const std::vector<double>& sigma,
                           const std::string& approx,
                           double truncated) {
  const int64_t axes = image.dim() - 1;
  if (sigma.size() != 1 && std::ssize(sigma) != axes)
    throw DataError(
        "{} spatial axes, expected a sigma for each or one for all, got {}", axes, sigma.size());
  at::Tensor result = image;
  for (int64_t axis = 0; axis < axes; ++axis) {
    const double of_axis = sigma[sigma.size() == 1 ? 0 : static_cast<std::size_t>(axis)];
    if (of_axis != 0)
      result = convolve(result, axis + 1, gaussian_kernel(of_axis, approx, truncated));
  }
  return result;
}

}  // namespace cytra::data
