// FillHolesd: what a label encloses becomes that label. Source: monai.transforms.FillHolesd.
#include <array>
#include <map>

#include "data/transforms/per_key.h"
#include "ops/connected_regions.h"

namespace cytra::data {
namespace {

/// First and last voxel along Z, Y, X.
struct Bounds {
  std::array<int64_t, 3> first{INT64_MAX, INT64_MAX, INT64_MAX}, last{-1, -1, -1};
};

/// Shape: volume (Z,Y,X).
std::map<float, Bounds> bounds_of_labels(const at::Tensor& volume) {
  std::map<float, Bounds> bounds;
  const at::Tensor labels = volume.contiguous();
  const float* data = labels.const_data_ptr<float>();
  for (int64_t z = 0; z < labels.size(0); ++z) {
    for (int64_t y = 0; y < labels.size(1); ++y) {
      for (int64_t x = 0; x < labels.size(2); ++x) {
        const float label = *data++;
        if (label == 0) continue;
        Bounds& box = bounds[label];
        const std::array<int64_t, 3> place{z, y, x};
        for (std::size_t d = 0; d < 3; ++d) {
          box.first[d] = std::min(box.first[d], place[d]);
          box.last[d] = std::max(box.last[d], place[d]);
        }
      }
    }
  }
  return bounds;
}

struct FillHolesd : KeyOptions {
  std::vector<int64_t> applied_labels;
  std::optional<int64_t> connectivity;
  template <class V>
  void visit(V& v) {
    KeyOptions::visit(v);
    v("applied_labels", applied_labels, "labels to fill, channels of one-hot; null: all but 0");
    v("connectivity",
      connectivity,
      "how a hole touches the outside, 1: faces, 2: edges too, 3: corners too; null: all",
      1,
      3);
  }

  at::Tensor operator()(const at::Tensor& image) const {
    at::Tensor result = image.clone(at::MemoryFormat::Contiguous);
    if (image.size(0) == 1) {
      fill(result[0], applied_labels);
      return result;
    }
    for (int64_t c = 1; c < image.size(0); ++c) {
      if (!applied_labels.empty() &&
          std::find(applied_labels.begin(), applied_labels.end(), c) == applied_labels.end())
        continue;
      result[c].copy_(image[c].ne(0));
      fill(result[c], {1});
    }
    return result;
  }

 private:
  /// Shape: labels ([Z,]Y,X), written to.
  void fill(const at::Tensor& labels, const std::vector<int64_t>& which) const {
    const at::Tensor volume = labels.dim() == 3 ? labels : labels.unsqueeze(0);
    for (const auto& [label, bounds] : bounds_of_labels(volume)) {
      const bool wanted = std::any_of(which.begin(), which.end(), [l = label](int64_t other) {
        return static_cast<float>(other) == l;
      });
      if (!which.empty() && !wanted) continue;
      // A hole lies inside the label's bounds; what reaches their faces leads outside.
      at::Tensor box = volume;
      for (std::size_t d = 0; d < 3; ++d)
        box = box.narrow(
            static_cast<int64_t>(d), bounds.first[d], bounds.last[d] - bounds.first[d] + 1);
      if (labels.dim() == 2) box = box[0];
      box.masked_fill_(holes(box.ne(label)), label);
    }
  }
  /// The regions of `outside` that touch no face of the box.
  at::Tensor holes(const at::Tensor& outside) const {
    const ops::Regions regions =
        ops::connected_regions(outside.to(at::kFloat), connectivity.value_or(0));
    const at::Tensor ids = at::tensor(regions.labels, at::kLong).reshape(outside.sizes());
    at::Tensor is_hole = at::ones({regions.count + 1}, at::kBool);
    is_hole[0] = false;
    for (int64_t d = 0; d < ids.dim(); ++d) {
      for (const int64_t face : {int64_t{0}, ids.size(d) - 1})
        is_hole.index_fill_(0, ids.select(d, face).flatten(), false);
    }
    return is_hole.index({ids});
  }
};
CYTRA_REGISTER(Transform, PerKey<FillHolesd>, "FillHolesd");

}  // namespace
}  // namespace cytra::data
