// Targets, loss and boxes of FCOS. Source: torchvision.models.detection.fcos (FCOS.compute_loss,
// FCOSHead.compute_loss, FCOS.postprocess_detections), except that places lie in the middle of
// their cells, as in the paper.
#include "nn/fcos.h"

#include <ATen/ATen.h>

#include "ops/boxes/boxes.h"

namespace cytra::nn {
namespace {

/// (A,3): x, y and stride of the places of all levels, by rows.
at::Tensor fcos_places(const std::vector<int64_t>& strides,
                       const std::vector<int64_t>& size,
                       const at::TensorOptions& options) {
  std::vector<at::Tensor> levels;
  for (const int64_t stride : strides) {
    const auto side = [&](int64_t length) {
      return (at::arange((length + stride - 1) / stride, options) + 0.5) * stride;
    };
    const std::vector<at::Tensor> grid = at::meshgrid({side(size[0]), side(size[1])}, "ij");
    levels.push_back(
        at::stack({grid[1], grid[0], at::full_like(grid[0], stride)}, 2).reshape({-1, 3}));
  }
  return at::cat(levels);
}

/// (N,C,A) float of the levels.
at::Tensor fcos_joined(const std::vector<at::Tensor>& levels) {
  std::vector<at::Tensor> flat;
  for (const at::Tensor& level : levels) flat.push_back(level.flatten(2).to(at::kFloat));
  return at::cat(flat, 2);
}

/// Distances (N,4,A) in strides to corners (N,4,A).
at::Tensor fcos_corners(const at::Tensor& distances, const at::Tensor& places) {
  const at::Tensor xy = places.narrow(1, 0, 2).t().unsqueeze(0), stride = places.select(1, 2);
  const at::Tensor pixels = distances * stride;
  return at::cat({xy - pixels.narrow(1, 0, 2), xy + pixels.narrow(1, 2, 2)}, 1);
}

at::Tensor fcos_area(const at::Tensor& corners) {  // (N,4,A) -> (N,A)
  return (corners.select(1, 2) - corners.select(1, 0)) *
         (corners.select(1, 3) - corners.select(1, 1));
}

/// torchvision.ops.generalized_box_iou_loss of (N,4,A): (N,A).
at::Tensor generalized_iou_loss(const at::Tensor& a, const at::Tensor& b) {
  constexpr double kEps = 1e-7;
  const auto first = [](const at::Tensor& corners) { return corners.narrow(1, 0, 2); };
  const auto last = [](const at::Tensor& corners) { return corners.narrow(1, 2, 2); };
  const at::Tensor sides =
      (at::minimum(last(a), last(b)) - at::maximum(first(a), first(b))).clamp_min(0);
  const at::Tensor shared = sides.select(1, 0) * sides.select(1, 1);
  const at::Tensor either = fcos_area(a) + fcos_area(b) - shared;
  const at::Tensor around = at::maximum(last(a), last(b)) - at::minimum(first(a), first(b));
  const at::Tensor hull = around.select(1, 0) * around.select(1, 1);
  return 1 - (shared / (either + kEps) - (hull - either) / (hull + kEps));
}

/// torchvision.ops.sigmoid_focal_loss with alpha 0.25 and gamma 2, of every element.
at::Tensor sigmoid_focal_loss(const at::Tensor& logits, const at::Tensor& target) {
  const at::Tensor p = logits.sigmoid();
  const at::Tensor wrong = p * (1 - target) + (1 - p) * target;
  return at::binary_cross_entropy_with_logits(logits, target, {}, {}, at::Reduction::None) *
         wrong.square() * (0.25 * target + 0.75 * (1 - target));
}

/// Whether a place's cell has a part of the image; others see the padding alone.
at::Tensor is_within(const at::Tensor& places, const std::vector<int64_t>& size) {
  const at::Tensor half = places.select(1, 2) / 2;
  return (places.select(1, 0) - half)
      .lt(size[1])
      .logical_and((places.select(1, 1) - half).lt(size[0]));
}

}  // namespace

at::Tensor fcos_target(const ops::Boxes& objects,
                       const std::vector<int64_t>& strides,
                       const std::vector<int64_t>& size,
                       double center_sampling_radius) {
  const at::Tensor places = fcos_places(strides, size, at::TensorOptions(at::kFloat));
  const int64_t count = places.size(0);
  at::Tensor target = at::zeros({5, 1, count});
  target[0].fill_(-1);
  if (objects.corners.size(0) == 0) return target;
  const at::Tensor corners = objects.corners.to(at::kFloat).unsqueeze(0);  // (1,M,4)
  const at::Tensor xy = places.narrow(1, 0, 2).unsqueeze(1), stride = places.narrow(1, 2, 1);
  const at::Tensor low = corners.narrow(2, 0, 2), high = corners.narrow(2, 2, 2);
  const at::Tensor distances = at::cat({xy - low, high - xy}, 2);  // (A,M,4)
  const at::Tensor farthest = distances.amax(2);
  at::Tensor nearest = 4 * stride, limit = 8 * stride;  // what a level is for
  nearest.masked_fill_(stride.eq(strides.front()), 0);
  limit.masked_fill_(stride.eq(strides.back()), INFINITY);
  const at::Tensor fits = ((xy - (low + high) / 2).abs().amax(2) < center_sampling_radius * stride)
                              .logical_and(distances.amin(2) > 0)
                              .logical_and(farthest > nearest)
                              .logical_and(farthest < limit);
  const at::Tensor sides = high - low;
  const at::Tensor area = (sides.select(2, 0) * sides.select(2, 1)).expand_as(fits);
  const auto [smallest, which] = area.masked_fill(fits.logical_not(), INFINITY).min(1);
  const at::Tensor has_one = smallest.isfinite();
  target[0][0] = at::where(
      has_one, objects.classes.to(at::kFloat).index_select(0, which), at::full({count}, -1.0F));
  target.slice(0, 1).select(1, 0) =
      corners[0].index_select(0, which).masked_fill(has_one.logical_not().unsqueeze(1), 0).t();
  return target;
}

FcosLoss fcos_loss(const std::vector<at::Tensor>& levels,
                   const at::Tensor& target,
                   const std::vector<int64_t>& strides) {
  const at::Tensor output = fcos_joined(levels);
  const int64_t classes = output.size(1) - 5;
  const at::Tensor places = fcos_places(
      strides,
      {levels.front().size(2) * strides.front(), levels.front().size(3) * strides.front()},
      output.options());
  const at::Tensor wanted = target.select(2, 0).to(output);  // (N,5,A)
  const at::Tensor kind = wanted.select(1, 0), is_object = kind.ge(0).to(at::kFloat);
  const at::Tensor count = is_object.sum().clamp_min(1);
  const at::Tensor one_hot = at::arange(classes, output.options())
                                 .reshape({1, -1, 1})
                                 .eq(kind.unsqueeze(1))
                                 .to(at::kFloat);

  const at::Tensor corners = wanted.narrow(1, 1, 4), xy = places.narrow(1, 0, 2).t().unsqueeze(0);
  const at::Tensor before = xy - corners.narrow(1, 0, 2), behind = corners.narrow(1, 2, 2) - xy;
  const at::Tensor ratios =
      at::minimum(before, behind).clamp_min(0) / at::maximum(before, behind).clamp_min(1e-6);
  const at::Tensor central = ratios.prod(1).sqrt();

  const at::Tensor predicted = fcos_corners(output.narrow(1, classes, 4), places);
  const at::Tensor central_loss = at::binary_cross_entropy_with_logits(
      output.select(1, classes + 4), central, {}, {}, at::Reduction::None);
  return {sigmoid_focal_loss(output.narrow(1, 0, classes), one_hot).sum() / count,
          (generalized_iou_loss(predicted, corners) * is_object).sum() / count,
          (central_loss * is_object).sum() / count};
}

std::vector<ops::Boxes> decode_fcos(const std::vector<at::Tensor>& levels,
                                    const std::vector<int64_t>& strides,
                                    const std::vector<int64_t>& size,
                                    const BoxOptions& options) {
  const int64_t images = levels.front().size(0), classes = levels.front().size(1) - 5;
  std::vector<std::vector<at::Tensor>> corners(static_cast<std::size_t>(images)), scores = corners,
                                                                                  kinds = corners;
  for (std::size_t l = 0; l < levels.size(); ++l) {
    const int64_t stride = strides[l];
    const at::Tensor level = levels[l].to(at::kCPU, at::kFloat);
    const at::Tensor places =
        fcos_places({stride}, {level.size(2) * stride, level.size(3) * stride}, level.options());
    const at::Tensor flat = level.flatten(2);  // (N,C,A)
    const at::Tensor score =
        (flat.narrow(1, 0, classes).sigmoid() * flat.narrow(1, classes + 4, 1).sigmoid()).sqrt();
    const at::Tensor boxes = fcos_corners(flat.narrow(1, classes, 4), places);
    for (int64_t n = 0; n < images; ++n) {
      const auto image = static_cast<std::size_t>(n);
      const at::Tensor all = score[n].t().reshape({-1});  // place by place
      const at::Tensor seen = is_within(places, size).repeat_interleave(classes);
      const at::Tensor good = all.gt(options.score_thresh).logical_and(seen).nonzero().select(1, 0);
      const at::Tensor good_scores = all.index_select(0, good);
      const int64_t kept = std::min(options.topk_candidates, good.size(0));
      const at::Tensor best =
          std::get<1>(good_scores.sort(/*stable=*/true, 0, /*descending=*/true)).narrow(0, 0, kept);
      const at::Tensor chosen = good.index_select(0, best);
      scores[image].push_back(good_scores.index_select(0, best));
      kinds[image].push_back(chosen.remainder(classes));
      corners[image].push_back(
          boxes[n].t().index_select(0, chosen.div(classes, "floor").to(at::kLong)));
    }
  }
  std::vector<ops::Boxes> found;
  for (std::size_t image = 0; image < corners.size(); ++image) {
    ops::Boxes all{at::cat(corners[image]), at::cat(scores[image]), at::cat(kinds[image])};
    all.corners = ops::clip_boxes(all.corners, size);
    // what lies in the padding alone has nothing left, and would take the place of others
    all = all.chosen(ops::box_sides(all.corners).amin(1).gt(0).nonzero().select(1, 0));
    const at::Tensor kept = ops::nms(all.corners, all.scores, all.classes, options.nms_thresh);
    found.push_back(all.chosen(kept.slice(0, 0, options.detections_per_img)));
  }
  return found;
}

}  // namespace cytra::nn
