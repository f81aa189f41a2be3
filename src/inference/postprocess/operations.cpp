// The operations of ops/labels/ as steps. RemoveSmallObjects clears objects of few voxels;
// AsDiscrete makes classes of scores, channels of classes, 0 and 1 by a threshold;
// DistanceTransformEDT says how far each voxel of the foreground is from the background
// (monai.transforms, the same names). ConnectedComponents numbers objects, which are connected
// voxels of one value, as skimage.measure.label. FlowsToLabels and StarsToLabels make objects of
// flows, as cellpose/dynamics.py, and of distances along rays, as stardist/nms.py; StitchPlanes
// joins those of planes, as cellpose.utils.stitch3D.
#include "ops/labels/operations.h"

#include <algorithm>
#include <numeric>

#include "inference/postprocess/step.h"
#include "ops/labels/component_rows.h"
#include "ops/labels/distance.h"
#include "ops/labels/flow_labels.h"
#include "ops/labels/star_labels.h"
#include "ops/labels/stitch_planes.h"

namespace cytra::inference {
namespace {

CYTRA_REGISTER(Postprocess, Step<OnLabels<ops::FillHoles>>, "FillHoles");
CYTRA_REGISTER(Postprocess,
               Step<OnLabels<ops::KeepLargestConnectedComponent>>,
               "KeepLargestConnectedComponent");
CYTRA_REGISTER(Postprocess, Step<ToLabels<ops::FlowsToLabels>>, "FlowsToLabels");
CYTRA_REGISTER(Postprocess, Step<ToLabels<ops::StarsToLabels>>, "StarsToLabels");

struct StitchPlanes {
  double threshold = 0.25;
  void visit(auto& v) {
    v("threshold", threshold, "least share of two objects that is common, to be one", 1e-9, 1);
  }
  void apply(Result& result) const {
    expect_labels(result);
    if (result.values.dim() == 3) return;  // a plane, which has no other
    if (result.values.size(0) != 1) throw DataError("expected the labels of a stack");
    const int64_t axis = std::max<int64_t>(result.plane_axis, 0);
    result.values = ops::stitch_planes(result.values[0], axis, threshold).unsqueeze(0);
  }
  std::unique_ptr<ops::RowStep> by_rows(Result& form,
                                        std::vector<int64_t>& shape,
                                        const std::string& /*folder*/) const {
    expect_labels(form);
    if (shape.size() != 4 || shape[0] != 1 || form.plane_axis > 0) return nullptr;
    const auto stitch = [own = std::make_shared<ops::PlaneStitcher>(threshold)](
                            const at::Tensor& plane) { return own->add(plane[0]); };
    return each_plane(stitch, shape[1]);
  }
};
CYTRA_REGISTER(Postprocess, Step<StitchPlanes>, "StitchPlanes");

/// The distance between voxels along ([Z,]Y,X) in um; empty where it is unknown.
std::vector<double> spacing_of(const Result& result, int64_t dims) {
  const auto& spacing = result.geometry.spacing_um;
  std::vector<double> known(spacing.end() - dims, spacing.end());
  for (const double step : known) {
    if (step <= 0) return {};
  }
  return known;
}

struct RemoveSmallObjects : ops::RemoveSmallObjects {
  void apply(Result& result) const {
    expect_labels(result);
    result.values = with_pixdim(result, result.values.dim() - 1)(result.values);
  }
  std::unique_ptr<ops::RowStep> by_rows(Result& form,
                                        std::vector<int64_t>& shape,
                                        const std::string& folder) const {
    expect_labels(form);
    const ops::RemoveSmallObjects options = with_pixdim(form, std::ssize(shape) - 1);
    return shape[0] == 1 ? options.row_step(image_of(shape), folder) : nullptr;
  }

 private:
  ops::RemoveSmallObjects with_pixdim(const Result& result, int64_t dims) const {
    ops::RemoveSmallObjects options = *this;
    if (options.by_measure && options.pixdim.empty()) options.pixdim = spacing_of(result, dims);
    if (options.by_measure && options.pixdim.empty())
      throw DataError("by_measure: the image's spacing is not known, expected pixdim");
    return options;
  }
};
CYTRA_REGISTER(Postprocess, Step<RemoveSmallObjects>, "RemoveSmallObjects");

struct AsDiscrete : ops::AsDiscrete {
  void apply(Result& result) const {
    result.values = (*this)(result.values).to(at::kInt);
    result.is_labels = true;
    result.is_objects = false;
  }
  std::unique_ptr<ops::RowStep> by_rows(Result& form,
                                        std::vector<int64_t>& shape,
                                        const std::string& /*folder*/) const {
    if (rounding) return nullptr;  // to whole numbers of any size
    return rows_with_halo(*this, 0, form, shape);
  }
};
CYTRA_REGISTER(Postprocess, Step<AsDiscrete>, "AsDiscrete");

struct ConnectedComponents {
  std::optional<int64_t> connectivity;
  void visit(auto& v) {
    v("connectivity", connectivity, "1: faces, 2: edges too, 3: corners too; null: all", 1, 3);
  }
  static constexpr bool kMakesObjects = true;
  void apply(Result& result) const {
    expect_labels(result);
    for_channels(result, [&](const at::Tensor& channel) {
      return ops::connected_components(channel, connectivity.value_or(0)).labels;
    });
    result.is_objects = true;
  }
  std::unique_ptr<ops::RowStep> by_rows(Result& form,
                                        std::vector<int64_t>& shape,
                                        const std::string& folder) const {
    expect_labels(form);
    if (shape[0] != 1) return nullptr;
    form.is_objects = true;
    const auto numbers = [](const std::vector<ops::ComponentRows::Component>& all) {
      std::vector<int32_t> own(all.size());
      std::iota(own.begin(), own.end(), 0);
      return own;
    };
    return std::make_unique<ops::ComponentRows>(
        connectivity.value_or(0), image_of(shape), folder, numbers);
  }
};
CYTRA_REGISTER(Postprocess, Step<ConnectedComponents>, "ConnectedComponents");

struct DistanceTransformEDT {
  std::vector<double> sampling;
  void visit(auto& v) {
    v("sampling",
      sampling,
      "distance between voxels, one number or one per dimension; null: 1",
      1e-12,
      1e12);
  }
  void apply(Result& result) const {
    expect_labels(result);
    for_channels(result, [&](const at::Tensor& channel) {
      return ops::distance_transform(channel, sampling);
    });
    result.is_labels = result.is_objects = false;
  }
};
CYTRA_REGISTER(Postprocess, Step<DistanceTransformEDT>, "DistanceTransformEDT");

}  // namespace

}  // namespace cytra::inference
