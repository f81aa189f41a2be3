// Source: monai.transforms.croppad.functional, monai.transforms.Crop.compute_slices.
#include "data/sample/pad_crop.h"

#include <algorithm>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "base/error.h"
#include "data/sample/spatial_options.h"

namespace cytra::data::spatial {
namespace {

/// The index of the voxel, in a line of n, for position i, which may be outside.
int64_t source(int64_t i, int64_t n, const std::string& mode) {
  if (mode == "edge" || mode == "replicate") return std::clamp<int64_t>(i, 0, n - 1);
  const auto modulo = [](int64_t a, int64_t b) { return ((a % b) + b) % b; };
  if (mode == "wrap" || mode == "circular") return modulo(i, n);
  if (mode == "symmetric") {
    const int64_t m = modulo(i, 2 * n);
    return m < n ? m : 2 * n - 1 - m;
  }
  if (n == 1) return 0;
  const int64_t m = modulo(i, 2 * n - 2);  // reflect
  return m < n ? m : 2 * n - 2 - m;
}

}  // namespace

const std::vector<std::string> kPadModes{
    "constant", "edge", "replicate", "reflect", "symmetric", "wrap", "circular"};

void check_made_size(at::IntArrayRef size) {
  constexpr int64_t kLargestSide = int64_t{1} << 24, kMostVoxels = int64_t{1} << 38;
  double voxels = 1;
  bool is_possible = true;
  for (const int64_t side : size) {
    voxels *= static_cast<double>(side);
    is_possible = is_possible && side >= 0 && side <= kLargestSide;
  }
  if (is_possible && voxels <= static_cast<double>(kMostVoxels)) return;
  throw DataError("an image of ({}) voxels would be made, expected {} a side and {} in all at most",
                  fmt::join(size, ","),
                  kLargestSide,
                  kMostVoxels);
}

at::Tensor pad(const at::Tensor& image,
               const PadWidths& widths,
               const std::string& mode,
               double value) {
  std::vector<int64_t> made = image.sizes().slice(1).vec();
  for (std::size_t d = 0; d < widths.size(); ++d) {
    check_made_size(
        {std::max<int64_t>(widths[d].first, 0), std::max<int64_t>(widths[d].second, 0)});
    made[d] += widths[d].first + widths[d].second;
  }
  check_made_size(made);
  if (mode == "constant") {
    std::vector<int64_t> last_first;
    bool any = false;
    for (auto width = widths.rbegin(); width != widths.rend(); ++width) {
      last_first.insert(last_first.end(), {width->first, width->second});
      any = any || width->first > 0 || width->second > 0;
    }
    if (!any) return image;
    // Every type on file can hold 0.
    return at::constant_pad_nd(value == 0 ? image : image.to(at::kFloat), last_first, value);
  }
  at::Tensor result = image;
  for (std::size_t d = 0; d < widths.size(); ++d) {
    const auto [before, after] = widths[d];
    if (before == 0 && after == 0) continue;
    const auto dim = static_cast<int64_t>(d) + 1;
    const int64_t n = image.size(dim);
    if (n == 0) {
      throw DataError("no voxel along spatial dimension {} to pad with mode '{}'", d, mode);
    }
    std::vector<int64_t> index;
    for (int64_t i = -before; i < n + after; ++i) index.push_back(source(i, n, mode));
    result = result.index_select(dim, at::tensor(index, at::kLong));
  }
  return result;
}

PadWidths widths_to(at::IntArrayRef image, const std::vector<int64_t>& size, bool at_end) {
  PadWidths widths;
  for (std::size_t d = 0; d < size.size(); ++d) {
    const int64_t missing = std::max<int64_t>(size[d] - image[d], 0);
    const int64_t before = at_end ? 0 : missing / 2;
    widths.emplace_back(before, missing - before);
  }
  return widths;
}

at::Tensor crop(const at::Tensor& image,
                const std::vector<int64_t>& start,
                const std::vector<int64_t>& size) {
  at::Tensor result = image;
  for (std::size_t d = 0; d < start.size(); ++d) {
    const auto dim = static_cast<int64_t>(d) + 1;
    const int64_t begin = std::clamp<int64_t>(start[d], 0, image.size(dim));
    const int64_t end = std::clamp<int64_t>(start[d] + size[d], begin, image.size(dim));
    result = result.narrow(dim, begin, end - begin);
  }
  return result;
}

std::vector<int64_t> center_start(at::IntArrayRef image, const std::vector<int64_t>& size) {
  std::vector<int64_t> start;
  for (std::size_t d = 0; d < size.size(); ++d)
    start.push_back(std::max<int64_t>(image[d] / 2 - size[d] / 2, 0));
  return start;
}

}  // namespace cytra::data::spatial
