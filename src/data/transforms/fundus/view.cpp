#include "data/transforms/fundus/view.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <tuple>

#include <ATen/ATen.h>

#include "base/error.h"
#include "data/sample/gaussian_filter.h"
#include "data/sample/resample.h"
#include "data/transforms/fundus/block_means.h"

namespace cytra::data::fundus {
namespace {

constexpr double kTaps = 3;      // sigmas to both sides
constexpr double kFinest = 4;    // least sigma in pixels for the computation
constexpr double kLeast = 1e-3;  // least value of the mask's blur to divide by

/// Keeps the last few tensors that are the same for all batches, by the values that they depend
/// on.
template <class Key>
class TensorCache {
 public:
  template <class Make>
  at::Tensor get(const Key& key, const Make& make) {
    const std::lock_guard lock(mutex_);
    const auto found = tensors_.find(key);
    if (found != tensors_.end()) return found->second;
    constexpr std::size_t kMost = 16;
    if (tensors_.size() >= kMost) tensors_.clear();
    return tensors_[key] = make();
  }

 private:
  std::mutex mutex_;
  std::map<Key, at::Tensor> tensors_;
};

double radius_of(const View& view) {
  return view.fill * static_cast<double>(view.size) / 2;
}

/// The map image = matrix @ view, as numbers: y = m[0] y' + m[1] x' + m[2], and x in the same way.
using Rows = std::array<double, 6>;

Rows rows_of(const Disc& disc, const View& view) {
  const double radius = radius_of(view), middle = static_cast<double>(view.size - 1) / 2;
  const double cosine = std::cos(disc.angle), sine = std::sin(disc.angle);
  const double a = disc.major / radius, b = disc.minor / radius;
  const double xx = a * cosine * cosine + b * sine * sine;
  const double yy = a * sine * sine + b * cosine * cosine;
  const double xy = (a - b) * cosine * sine;
  return {yy, xy, disc.y - (yy + xy) * middle, xy, xx, disc.x - (xy + xx) * middle};
}

/// The source positions of the pixels of `height` x `width` images, y and x: (N,height,width)
/// each.
std::pair<at::Tensor, at::Tensor> sources(const std::vector<Rows>& matrices,
                                          int64_t height,
                                          int64_t width,
                                          const at::TensorOptions& options) {
  const at::Tensor numbers = at::empty({std::ssize(matrices), 6}, at::kDouble);
  double* out = numbers.data_ptr<double>();
  for (const Rows& rows : matrices) out = std::ranges::copy(rows, out).out;
  const at::Tensor m = numbers.to(options).unsqueeze(2).unsqueeze(3);
  const at::Tensor y = at::arange(height, options).unsqueeze(1), x = at::arange(width, options);
  const auto row = [&](int64_t i) {
    return m.select(1, i) * y + m.select(1, i + 1) * x + m.select(1, i + 2);
  };
  return {row(0), row(3)};
}

/// Samples the images at positions; 0 outside.
at::Tensor sample(const at::Tensor& images,
                  const std::vector<Rows>& matrices,
                  int64_t height,
                  int64_t width,
                  bool is_nearest) {
  const auto options =
      at::TensorOptions(is_nearest ? at::kDouble : at::kFloat).device(images.device());
  const auto [y, x] = sources(matrices, height, width, options);
  const at::Tensor points = at::stack({(x * 2 + 1) / static_cast<double>(images.size(3)) - 1,
                                       (y * 2 + 1) / static_cast<double>(images.size(2)) - 1},
                                      -1);
  return spatial::sample_points(
      images, points, is_nearest ? "nearest" : "bilinear", "zeros", /*align_corners=*/false);
}

at::Tensor gaussian(double sigma, const at::TensorOptions& options) {
  const std::vector<float> taps = gaussian_kernel(sigma, "sampled", kTaps);
  const at::Tensor kernel = at::tensor(taps);
  return (kernel / kernel.sum()).to(options);
}

/// Blurs along a dimension, with 0 beyond the border, by a sum of shifted images: on a CPU this
/// takes a tenth of the time of oneDNN's convolution, which is made for 16 channels.
at::Tensor blur_by_shifts(const at::Tensor& images, const at::Tensor& kernel, int64_t dimension) {
  const int64_t reach = kernel.size(0) / 2, length = images.size(dimension);
  const float* weight = kernel.const_data_ptr<float>() + reach;
  at::Tensor sum = images * weight[0];
  for (int64_t shift = 1; shift <= std::min(reach, length - 1); ++shift) {
    const int64_t count = length - shift;
    sum.narrow(dimension, 0, count).add_(images.narrow(dimension, shift, count), weight[shift]);
    sum.narrow(dimension, shift, count).add_(images.narrow(dimension, 0, count), weight[shift]);
  }
  return sum;
}

/// Blurs float32 images; on a GPU in float16.
at::Tensor blur(const at::Tensor& images, double sigma) {
  static TensorCache<std::tuple<double, std::string>> kernels;
  const c10::Device device = images.device();
  const auto options = images.options().dtype(device.is_cpu() ? at::kFloat : at::kHalf);
  const at::Tensor kernel =
      kernels.get({sigma, device.str()}, [&] { return gaussian(sigma, options); });
  if (device.is_cpu()) return blur_by_shifts(blur_by_shifts(images, kernel, 3), kernel, 2);
  const int64_t reach = kernel.size(0) / 2;
  const std::vector<int64_t> along_x{0, reach}, along_y{reach, 0};
  at::Tensor wide = images.to(at::kHalf).reshape({-1, 1, images.size(2), images.size(3)});
  wide = at::conv2d(wide, kernel.view({1, 1, 1, -1}), {}, 1, along_x);
  wide = at::conv2d(wide, kernel.view({1, 1, -1, 1}), {}, 1, along_y);
  return wide.to(at::kFloat).view(images.sizes());
}

}  // namespace

at::Tensor matrix_of(const Disc& disc, const View& view) {
  const Rows m = rows_of(disc, view);
  return at::tensor({m[0], m[1], m[2], m[3], m[4], m[5], 0.0, 0.0, 1.0}, at::kDouble).view({3, 3});
}

at::Tensor to_view(const at::Tensor& images,
                   const std::vector<Disc>& discs,
                   const View& view,
                   bool is_nearest) {
  // Discs that are reduced by the same factor are treated together: means over blocks of as many
  // pixels come first.
  std::map<int64_t, std::vector<int64_t>> by_block;
  for (std::size_t n = 0; n < discs.size(); ++n) {
    const double shrink = is_nearest ? 1 : discs[n].minor / radius_of(view);
    by_block[std::max<int64_t>(1, static_cast<int64_t>(shrink))].push_back(static_cast<int64_t>(n));
  }
  at::Tensor views;
  for (const auto& [block, members] : by_block) {
    const at::Tensor index = at::tensor(members, at::kLong).to(images.device());
    const bool are_all = by_block.size() == 1;
    at::Tensor chosen = are_all ? images : images.index_select(0, index);
    if (!is_nearest) chosen = block_means(chosen, block);
    std::vector<Rows> matrices;
    for (const int64_t n : members) {
      Rows rows = rows_of(discs[static_cast<std::size_t>(n)], view);
      for (double& number : rows) number /= static_cast<double>(block);
      // The centre of a block is between its pixels.
      rows[2] -= static_cast<double>(block - 1) / 2 / static_cast<double>(block);
      rows[5] -= static_cast<double>(block - 1) / 2 / static_cast<double>(block);
      matrices.push_back(rows);
    }
    const at::Tensor part = sample(chosen, matrices, view.size, view.size, is_nearest);
    if (are_all) return part;
    if (!views.defined())
      views = at::empty({images.size(0), images.size(1), view.size, view.size}, part.options());
    views.index_copy_(0, index, part);
  }
  return views;
}

at::Tensor mask_of(const std::vector<Disc>& discs,
                   const View& view,
                   c10::Device device,
                   double margin) {
  static TensorCache<std::tuple<int64_t, double, double, std::string>> circles;
  const auto options = at::TensorOptions(at::kFloat).device(device);
  const at::Tensor circle = circles.get({view.size, view.fill, margin, device.str()}, [&] {
    const at::Tensor from_middle =
        at::arange(view.size, options) - static_cast<double>(view.size - 1) / 2;
    const at::Tensor squares = from_middle * from_middle;
    const double radius = radius_of(view) * (1 - margin);
    return (squares.unsqueeze(1) + squares).le(radius * radius);
  });
  std::vector<Rows> matrices;
  std::vector<float> borders;
  for (const Disc& disc : discs) {
    matrices.push_back(rows_of(disc, view));
    // Half a pixel, and the rim at cut edges, are excluded.
    const double rim = margin * disc.radius() - 0.5;
    for (const double border :
         {disc.top + rim, disc.bottom - rim, disc.left + rim, disc.right - rim})
      borders.push_back(static_cast<float>(border));
  }
  const at::Tensor box = at::tensor(borders).view({-1, 4, 1, 1}).to(device);
  const auto [y, x] = sources(matrices, view.size, view.size, options);
  const at::Tensor is_shown = y.ge(box.select(1, 0))
                                  .logical_and_(y.le(box.select(1, 1)))
                                  .logical_and_(x.ge(box.select(1, 2)))
                                  .logical_and_(x.le(box.select(1, 3)));
  return is_shown.logical_and_(circle).unsqueeze(1).to(at::kFloat);
}

at::Tensor enhance(const at::Tensor& views,
                   const at::Tensor& mask,
                   const View& view,
                   double sigma,
                   double factor) {
  const double pixels = sigma * radius_of(view);
  // Neighbours are averaged first as long as that is well below the blur: the largest divisor.
  int64_t block = std::max<int64_t>(1, static_cast<int64_t>(pixels / kFinest));
  while (view.size % block != 0) --block;
  const auto side = static_cast<double>(block);
  // The blocks' mean and the interpolation between their centres blur, too: block^2 (1/12 + 1/6).
  const double rest =
      std::sqrt(std::max(0.25, pixels * pixels / (side * side) - (block > 1 ? 0.25 : 0)));
  const at::Tensor shown = views.to(at::kFloat) * mask;
  at::Tensor wide = at::cat({shown, mask}, 1);
  if (block > 1) wide = at::avg_pool2d(wide, {block, block});
  wide = blur(wide, rest);
  const int64_t channels = views.size(1);
  const at::Tensor blurred =
      wide.narrow(1, 0, channels) / wide.narrow(1, channels, 1).clamp_min(kLeast);
  const at::Tensor mean =
      block > 1 ? at::upsample_bilinear2d(blurred, {view.size, view.size}, false) : blurred;
  return ((shown - mean) * factor + 0.5).clamp_(0, 1).mul_(mask);
}

double white_of(const at::Tensor& image) {
  if (image.scalar_type() == at::kByte) return 255;
  if (image.scalar_type() == at::kUInt16) return 65535;
  const double most = image.to(at::kFloat).max().item<double>();
  if (most > 1) {
    throw DataError("values up to {:g}, expected 0 to 1, or the value that is white: white: 255",
                    most);
  }
  return 1;
}

}  // namespace cytra::data::fundus
