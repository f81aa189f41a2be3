// RemoveSmallObjectsd: clears what covers few voxels. Source: monai.transforms.RemoveSmallObjectsd,
// skimage.morphology.remove_small_objects. As there, an image with values above 1 holds objects by
// number, whose voxels may lie apart; a mask's objects are its connected regions. scikit-image 0.26
// removes those of min_size, too; here as in the versions before and the documentation, smaller
// ones.
#include <cmath>

#include "data/transforms/per_key.h"
#include "ops/connected_regions.h"

namespace cytra::data {
namespace {

struct RemoveSmallObjectsd : KeyOptions {
  double min_size = 64;
  std::optional<int64_t> connectivity = 1;
  bool independent_channels = true, by_measure = false;
  std::vector<double> pixdim;
  template <class V>
  void visit(V& v) {
    KeyOptions::visit(v);
    v("min_size", min_size, "smaller objects are removed; voxels, or see by_measure", 0, 1e15);
    v("connectivity", connectivity, "1: faces, 2: edges too, 3: corners too; null: all", 1, 3);
    v("independent_channels", independent_channels, "false: objects of any number count together");
    v("by_measure", by_measure, "min_size is in the units of pixdim, to the power of dimensions");
    v("pixdim", pixdim, "distance between voxels, one or per spatial dimension", 1e-12, 1e12);
  }
  void check() const {
    if (by_measure && pixdim.empty()) throw ConfigError("by_measure: expected pixdim, too");
  }

  at::Tensor operator()(const at::Tensor& image) const {
    if (image.size(0) != 1)
      throw DataError(std::to_string(image.size(0)) + " channels, expected 1 of labels");
    const at::Tensor labels = image[0].contiguous();
    const bool regions =
        !independent_channels || labels.numel() == 0 || labels.max().item<float>() <= 1;
    const at::Tensor objects =
        regions ? of_regions(labels) : std::get<1>(at::_unique(labels, false, true));
    const at::Tensor sizes = objects.flatten().bincount();
    const at::Tensor keep = sizes.ge(smallest(image.dim() - 1)).index_select(0, objects.flatten());
    return image * keep.reshape(image.sizes());
  }

 private:
  at::Tensor of_regions(const at::Tensor& labels) const {
    const at::Tensor mask = (independent_channels ? labels.ne(0) : labels.gt(0)).to(at::kFloat);
    const int64_t reach = std::min(connectivity.value_or(0), labels.dim());
    const ops::Regions regions = ops::connected_regions(mask, reach);
    return at::tensor(regions.labels, at::kInt).to(at::kLong).reshape(labels.sizes());
  }
  int64_t smallest(int64_t dims) const {
    if (by_measure && pixdim.size() != 1 && static_cast<int64_t>(pixdim.size()) != dims) {
      throw DataError(std::to_string(dims) +
                      " spatial dimensions, expected as many in pixdim, or 1");
    }
    double volume = 1;
    for (int64_t d = 0; by_measure && d < dims; ++d)
      volume *= pixdim[pixdim.size() == 1 ? 0 : static_cast<std::size_t>(d)];
    return static_cast<int64_t>(std::ceil(min_size / volume));
  }
};
CYTRA_REGISTER(Transform, PerKey<RemoveSmallObjectsd>, "RemoveSmallObjectsd");

}  // namespace
}  // namespace cytra::data
