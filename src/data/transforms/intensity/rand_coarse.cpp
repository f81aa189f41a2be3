// RandCoarseDropoutd, RandCoarseShuffled: boxes filled, or their voxels shuffled. Source:
// monai.transforms.{RandCoarseDropoutd, RandCoarseShuffled}.

#include "data/sample/per_key.h"

namespace cytra::data {
namespace {

struct Box {
  std::vector<int64_t> start, size;  // per spatial axis
  at::Tensor of(const at::Tensor& image) const {
    at::Tensor view = image;
    for (std::size_t d = 0; d < start.size(); ++d) {
      const auto dim = static_cast<int64_t>(d) + 1;
      if (image.dim() != std::ssize(start) + 1 || start[d] + size[d] > image.size(dim))
        throw DataError("another size than the first key, expected the same: they share the holes");
      view = view.narrow(dim, start[d], size[d]);
    }
    return view;
  }
};

at::Tensor uniform(at::IntArrayRef sizes, double low, double high, Rng& rng) {
  at::Tensor values = at::empty(sizes, at::kFloat);
  float* data = values.mutable_data_ptr<float>();
  for (int64_t i = 0; i < values.numel(); ++i) data[i] = static_cast<float>(rng.uniform(low, high));
  return values;
}

struct CoarseOptions : RandKeyOptions {
  int64_t holes = 1;
  std::vector<int64_t> spatial_size, max_spatial_size;
  std::optional<int64_t> max_holes;
  void visit(auto& v) {
    RandKeyOptions::visit(v);
    v("holes", holes, "number of boxes, or the least number", config::required);
    v("spatial_size",
      spatial_size,
      "size of a box, or the least size, one or one per axis (Z, Y, X); <= 0: the image's",
      config::required);
    v("max_holes", max_holes, "the number is drawn from holes..max_holes");
    v("max_spatial_size",
      max_spatial_size,
      "each box's size is drawn from spatial_size..max_spatial_size");
  }
  void check() const {
    if (holes < 1) throw ConfigError("holes: expected at least 1");
    if (max_holes && *max_holes < holes) throw ConfigError("max_holes: expected at least holes");
  }
  std::vector<Box> draw_boxes(Rng& rng, const at::Tensor& first) const {
    const auto from = [&](int64_t low, int64_t high) {
      return low + static_cast<int64_t>(rng.below(static_cast<uint64_t>(high - low + 1)));
    };
    const at::IntArrayRef image = first.sizes().slice(1);
    const std::vector<int64_t> least = in_full(spatial_size, image);
    const std::vector<int64_t> most =
        max_spatial_size.empty() ? least : in_full(max_spatial_size, image);
    std::vector<Box> boxes(static_cast<std::size_t>(max_holes ? from(holes, *max_holes) : holes));
    for (Box& box : boxes) {
      for (std::size_t d = 0; d < least.size(); ++d) {
        if (most[d] < least[d])
          throw DataError(
              "max_spatial_size {} along axis {}, expected at least {}", most[d], d, least[d]);
        const int64_t size = max_spatial_size.empty() ? least[d] : from(least[d], most[d]);
        box.size.push_back(std::min(size, image[d]));
      }
      for (std::size_t d = 0; d < least.size(); ++d)
        box.start.push_back(image[d] > box.size[d] ? from(0, image[d] - box.size[d]) : 0);
    }
    return boxes;
  }

 private:
  static std::vector<int64_t> in_full(std::vector<int64_t> size, at::IntArrayRef image) {
    if (size.size() == 1) size.resize(image.size(), size[0]);
    if (size.size() != image.size()) {
      throw DataError("{} spatial axes, expected a size for each or one for all, got {}",
                      image.size(),
                      size.size());
    }
    for (std::size_t d = 0; d < size.size(); ++d) {
      if (size[d] <= 0) size[d] = image[d];
    }
    return size;
  }
};

struct RandCoarseDropoutd : CoarseOptions {
  bool dropout_holes = true;
  std::vector<double> fill_value;
  void visit(auto& v) {
    CoarseOptions::visit(v);
    v("dropout_holes", dropout_holes, "fill the boxes; false: all but the boxes");
    v("fill_value",
      fill_value,
      "with this; two numbers: random values between; null: between the least and the greatest");
  }
  void check() const {
    CoarseOptions::check();
    if (!fill_value.empty()) check_range("fill_value", fill_value, true);
  }
  auto draw(Rng& rng, const at::Tensor& first) const {
    return [this, &rng, boxes = draw_boxes(rng, first)](const at::Tensor& image) {
      const auto filling = [&](at::IntArrayRef sizes) {
        if (fill_value.size() == 1) return at::full(sizes, fill_value[0], at::kFloat);
        const bool given = fill_value.size() == 2;
        return uniform(sizes,
                       given ? fill_value[0] : image.min().item<float>(),
                       given ? fill_value[1] : image.max().item<float>(),
                       rng);
      };
      at::Tensor result = dropout_holes ? image.clone() : filling(image.sizes());
      for (const Box& box : boxes) {
        at::Tensor place = box.of(result);
        place.copy_(dropout_holes ? filling(place.sizes()) : box.of(image));
      }
      return result;
    };
  }
};
CYTRA_REGISTER(Transform, RandPerKey<RandCoarseDropoutd>, "RandCoarseDropoutd");

struct RandCoarseShuffled : CoarseOptions {
  /// Draws the same boxes for all keys; each channel of each key is shuffled in its own order, as
  /// in MONAI.
  auto draw(Rng& rng, const at::Tensor& first) const {
    return [&rng, boxes = draw_boxes(rng, first)](const at::Tensor& image) {
      at::Tensor result = image.clone();
      for (const Box& box : boxes) {
        for (at::Tensor& channel : box.of(result).unbind(0)) {
          at::Tensor shuffled = channel.clone(at::MemoryFormat::Contiguous);
          float* values = shuffled.mutable_data_ptr<float>();
          for (int64_t i = shuffled.numel() - 1; i > 0; --i)  // Fisher-Yates
            std::swap(values[i], values[rng.below(static_cast<uint64_t>(i) + 1)]);
          channel.copy_(shuffled);
        }
      }
      return result;
    };
  }
};
CYTRA_REGISTER(Transform, RandPerKey<RandCoarseShuffled>, "RandCoarseShuffled");

}  // namespace
}  // namespace cytra::data
