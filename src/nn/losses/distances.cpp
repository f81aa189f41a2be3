// Losses that weight an error by its distance to a border: BoundaryLoss, HausdorffDTLoss,
// LogHausdorffDTLoss. Arguments and values of monai.losses'. Distances take voxels outside of a
// mask as background. Sources: arXiv:1812.07032, arXiv:1904.10030.
#include <ATen/ATen.h>

#include "config/registry.h"
#include "nn/losses/channels.h"
#include "ops/labels/distance.h"

namespace cytra::nn {
namespace {

/// The distance from each voxel to the nearest one on the other side, negative inside; 0 where a
/// mask is empty or full. Shape: (N,K,[D,]H,W), inside from 0.5 on -> the same, float32. Units:
/// voxels.
at::Tensor signed_distances(const at::Tensor& probability) {
  const at::Tensor inside = probability.detach().gt(0.5).flatten(0, 1);
  if (!inside.is_cpu()) {
    const at::Tensor distances =
        ops::distance_transforms(inside.logical_not()) - ops::distance_transforms(inside);
    return at::where(distances.isfinite(), distances, 0).view(probability.sizes());
  }
  at::Tensor distances = at::zeros_like(inside, at::kFloat);
  for (int64_t i = 0; i < inside.size(0); ++i) {
    const at::Tensor mask = inside[i];
    if (!mask.any().item<bool>() || mask.all().item<bool>()) continue;
    distances[i].copy_(ops::distance_transform(mask.logical_not()) - ops::distance_transform(mask));
  }
  return distances.view(probability.sizes());
}

struct DistanceOptions : ChannelOptions {
  bool batch = false;
  void visit(auto& v) {
    ChannelOptions::visit(v);
    v("batch", batch, "means over the batch instead of over each image");
  }
};

struct BoundaryLoss : DistanceOptions {
  at::Tensor compute(const LossInput& in) const {
    const auto [p, t] = channels(in);
    const at::Tensor distances = signed_distances(t);
    return reduced(voxel_means(p * (distances + distances.lt(0)), in.mask, batch));
  }
};
CYTRA_REGISTER(Loss, LossOf<BoundaryLoss>, "BoundaryLoss");

struct HausdorffDTLoss : DistanceOptions {
  double alpha = 2;
  HausdorffDTLoss() { include_background = false; }
  void visit(auto& v) {
    DistanceOptions::visit(v);
    v("alpha", alpha, "power of the distances", 0, 100);
  }
  at::Tensor compute(const LossInput& in) const {
    const auto [p, t] = channels(in);
    const auto far = [this](const at::Tensor& side) {
      return signed_distances(side).abs().pow(alpha);
    };
    return reduced(voxel_means((p - t).square() * (far(p) + far(t)), in.mask, batch));
  }
};
CYTRA_REGISTER(Loss, LossOf<HausdorffDTLoss>, "HausdorffDTLoss");

struct LogHausdorffDTLoss : HausdorffDTLoss {
  at::Tensor compute(const LossInput& in) const { return HausdorffDTLoss::compute(in).log1p(); }
};
CYTRA_REGISTER(Loss, LossOf<LogHausdorffDTLoss>, "LogHausdorffDTLoss");

}  // namespace
}  // namespace cytra::nn
