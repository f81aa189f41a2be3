// MedianSmoothd: the median of a box around each voxel, the border repeated. Source:
// monai.transforms.MedianSmoothd.
#include <array>

#include "data/sample/per_key.h"

namespace cytra::data {
namespace {

struct MedianSmoothd : KeyOptions {
  std::vector<int64_t> radius;
  void visit(auto& v) {
    KeyOptions::visit(v);
    v("radius", radius, "voxels to each side, one or one per axis (Z, Y, X)", config::required);
  }
  void check() const {
    if (*std::ranges::min_element(radius) < 0) throw ConfigError("radius: expected no less than 0");
  }

  at::Tensor operator()(const at::Tensor& image) const {
    const auto axes = static_cast<std::size_t>(image.dim() - 1);
    if (radius.size() != 1 && radius.size() != axes) {
      throw DataError(std::to_string(axes) +
                      " spatial axes, expected a radius for each or one for all");
    }
    std::array<int64_t, 3> reach{}, size{1, 1, 1};  // Z, Y, X; a plane has one Z
    for (std::size_t axis = 0; axis < axes; ++axis) {
      reach[3 - axes + axis] = radius[radius.size() == 1 ? 0 : axis];
      size[3 - axes + axis] = image.size(static_cast<int64_t>(axis) + 1);
    }
    const at::Tensor in = image.contiguous();
    at::Tensor out = at::empty_like(in);
    const int64_t voxels = size[0] * size[1] * size[2];
    for (int64_t c = 0; c < image.size(0); ++c) {
      smooth(in.const_data_ptr<float>() + c * voxels,
             out.mutable_data_ptr<float>() + c * voxels,
             reach,
             size);
    }
    return out;
  }

 private:
  static void smooth(const float* from,
                     float* to,
                     const std::array<int64_t, 3>& reach,
                     const std::array<int64_t, 3>& size) {
    const auto inside = [&](int64_t i, std::size_t axis) {
      return std::clamp<int64_t>(i, 0, size[axis] - 1);
    };
    std::vector<float> box;
    for (int64_t z = 0; z < size[0]; ++z) {
      for (int64_t y = 0; y < size[1]; ++y) {
        for (int64_t x = 0; x < size[2]; ++x) {
          box.clear();
          for (int64_t i = z - reach[0]; i <= z + reach[0]; ++i) {
            for (int64_t j = y - reach[1]; j <= y + reach[1]; ++j) {
              const float* row = from + (inside(i, 0) * size[1] + inside(j, 1)) * size[2];
              for (int64_t k = x - reach[2]; k <= x + reach[2]; ++k)
                box.push_back(row[inside(k, 2)]);
            }
          }
          const auto middle = box.begin() + static_cast<std::ptrdiff_t>(box.size() / 2);
          std::nth_element(box.begin(), middle, box.end());
          *to++ = *middle;
        }
      }
    }
  }
};
CYTRA_REGISTER(Transform, PerKey<MedianSmoothd>, "MedianSmoothd");

}  // namespace
}  // namespace cytra::data
