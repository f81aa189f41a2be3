#include "ops/ssim.h"

#include <ATen/ATen.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"

namespace cytra::ops {
namespace {

template <class T>
std::vector<T> one_per_axis(const std::vector<T>& given, int64_t dims, const char* name) {
  if (given.size() == 1) return std::vector<T>(static_cast<std::size_t>(dims), given[0]);
  if (std::ssize(given) == dims) return given;
  throw DataError("SSIM: {} has {} numbers, expected 1 or {}", name, given.size(), dims);
}

at::Tensor weights_of(const SsimOptions& options, int64_t size, double sigma) {
  if (options.kernel_type == "uniform") return at::full({size}, 1.0 / static_cast<double>(size));
  const double middle = static_cast<double>(size - 1) / 2;
  const at::Tensor place = at::arange(size, at::kDouble) - middle;
  return at::softmax(place.div(sigma).square().div(-2), 0);
}

}  // namespace

std::vector<int64_t> ssim_window(const SsimOptions& options, int64_t dims) {
  return one_per_axis(options.win_size, dims, "win_size");
}

at::Tensor ssim(const at::Tensor& prediction,
                const at::Tensor& truth,
                const at::Tensor& data_range,
                const SsimOptions& options) {
  // Convolutions in autocast's bfloat16 would lose the variances.
  const c10::impl::ExcludeDispatchKeyGuard in_full_precision(c10::autocast_dispatch_keyset);
  const int64_t dims = truth.dim() - 2;
  const std::vector<int64_t> window = ssim_window(options, dims);
  const std::vector<double> sigma = one_per_axis(options.kernel_sigma, dims, "kernel_sigma");
  const auto blurred = [&](at::Tensor values) {  // (N,C,...), each axis in turn
    std::vector<int64_t> sizes = values.sizes().slice(0, 2).vec();
    values = values.flatten(0, 1).unsqueeze(1);
    for (int64_t d = 0; d < dims; ++d) {
      const auto axis = static_cast<std::size_t>(d);
      if (values.size(d + 2) < window[axis]) {
        throw DataError(
            "SSIM: an image of ({}) is smaller than the window ({}); set win_size for each axis",
            fmt::join(truth.sizes().slice(2), ","),
            fmt::join(window, ","));
      }
      std::vector<int64_t> shape(static_cast<std::size_t>(dims) + 2, 1);
      shape[axis + 2] = window[axis];
      const at::Tensor kernel =
          weights_of(options, window[axis], sigma[axis]).to(values.options()).view(shape);
      values = dims == 2 ? at::conv2d(values, kernel) : at::conv3d(values, kernel);
      sizes.push_back(values.size(d + 2));
    }
    return values.view(sizes);
  };
  // The mean of the image is subtracted: float32 squares of raw intensities would lose the
  // variance.
  std::vector<int64_t> all_but_batch;
  for (int64_t d = 1; d < truth.dim(); ++d) all_but_batch.push_back(d);
  const at::Tensor middle = truth.detach().mean(all_but_batch, /*keepdim=*/true);
  const at::Tensor x = prediction - middle, y = truth - middle;
  const std::vector<at::Tensor> moments = blurred(at::cat({x, y, x * x, y * y, x * y})).chunk(5);
  const at::Tensor &mean_x = moments[0], &mean_y = moments[1];
  const at::Tensor variances = moments[2] + moments[3] - mean_x.square() - mean_y.square();
  const at::Tensor covariance = moments[4] - mean_x * mean_y;
  const at::Tensor mu_x = mean_x + middle, mu_y = mean_y + middle;
  const at::Tensor c1 = (options.k1 * data_range).square(), c2 = (options.k2 * data_range).square();
  return (2 * mu_x * mu_y + c1) / (mu_x.square() + mu_y.square() + c1) * (2 * covariance + c2) /
         (variances + c2);
}

}  // namespace cytra::ops
