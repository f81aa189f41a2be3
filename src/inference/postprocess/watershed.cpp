// Watershed: splits objects that touch, where they are narrow: markers at peaks of the distance to
// the background, floods from these. Source: scikit-image's recipe, peak_local_max and watershed;
// unlike it, every object has a marker, however near a larger one it is.
#include "ops/labels/watershed.h"

#include "inference/postprocess/step.h"
#include "ops/labels/components.h"
#include "ops/labels/distance.h"

namespace cytra::inference {
namespace {

struct Watershed {
  int64_t min_distance = 5;
  std::optional<int64_t> connectivity = 1;
  std::vector<double> sampling;
  void visit(auto& v) {
    v("min_distance",
      min_distance,
      "smallest distance between centres in voxels, along at least one axis",
      1,
      1e6);
    v("connectivity", connectivity, "1: faces, 2: edges too, 3: corners too; null: all", 1, 3);
    v("sampling",
      sampling,
      "distance between voxels, one number or one per dimension; null: 1",
      1e-12,
      1e12);
  }
  static constexpr bool kMakesObjects = true;
  void apply(Result& result) const {
    expect_labels(result);
    for_channels(result, [&](const at::Tensor& channel) {
      return blocks(channel.sizes().vec(), "")->add(channel.unsqueeze(0))[0];
    });
    result.is_objects = true;
  }
  std::unique_ptr<ops::RowStep> by_rows(Result& form,
                                        std::vector<int64_t>& shape,
                                        const std::string& folder) const {
    expect_labels(form);
    if (shape[0] != 1) return nullptr;
    form.is_objects = true;
    return blocks(image_of(shape), folder);
  }

 private:
  /// Larger blocks than those of flows: a mask may have wide parts, and a voxel takes less memory.
  std::unique_ptr<ops::LabelBlocks> blocks(const std::vector<int64_t>& image,
                                           const std::string& folder) const {
    static const ops::LabelBlocks::Sizes plane{{4096, 4096}, {512, 512}, {1024, 1024}},
        volume{{256, 512, 512}, {32, 64, 64}, {64, 128, 128}};
    const auto make = [own = *this](const at::Tensor& values, const ops::Part&) {
      return own.split(values[0]);
    };
    return std::make_unique<ops::LabelBlocks>(
        make, image, folder, image.size() == 3 ? volume : plane, /*bytes_per_voxel=*/60);
  }
  at::Tensor split(const at::Tensor& channel) const {
    const at::Tensor mask = channel.ne(0);
    const int64_t reach = connectivity.value_or(0);
    ops::PeakOptions search;
    search.min_distance = min_distance;
    search.labels = ops::connected_components(mask, reach).labels;
    search.threshold_abs = 0;
    const at::Tensor distance = ops::distance_transform(mask, sampling);
    at::Tensor peaks = at::zeros(mask.sizes(), at::kBool);
    bool* is_peak = peaks.mutable_data_ptr<bool>();
    for (const int64_t voxel : ops::peak_local_max(distance, search)) is_peak[voxel] = true;
    const at::Tensor markers = ops::connected_components(peaks, reach).labels;
    return ops::watershed(distance.neg(), markers, mask, reach);
  }
};
CYTRA_REGISTER(Postprocess, Step<Watershed>, "Watershed");

}  // namespace
}  // namespace cytra::inference
