// SoftclDiceLoss: whether the skeleton of each mask lies in the other mask, so that tubes stay
// connected. SoftDiceclDiceLoss: clDice and Dice. Arguments and values of monai.losses'. Source:
// arXiv:2003.07311.
#include <ATen/ATen.h>

#include "config/registry.h"
#include "nn/losses/dice.h"

namespace cytra::nn {
namespace {

at::Tensor max_pooled(const at::Tensor& image, const std::vector<int64_t>& window) {
  std::vector<int64_t> padding;
  for (const int64_t size : window) padding.push_back(size / 2);
  return window.size() == 2 ? at::max_pool2d(image, window, {1}, padding)
                            : at::max_pool3d(image, window, {1}, padding);
}

/// The smallest value of a voxel and its neighbours along the axes.
at::Tensor soft_eroded(const at::Tensor& image) {
  at::Tensor least;
  const std::size_t axes = static_cast<std::size_t>(image.dim()) - 2;
  for (std::size_t axis = 0; axis < axes; ++axis) {
    std::vector<int64_t> window(axes, 1);
    window[axis] = 3;
    const at::Tensor along = -max_pooled(-image, window);
    least = least.defined() ? at::minimum(least, along) : along;
  }
  return least;
}

at::Tensor soft_skeleton(at::Tensor image, int64_t iterations) {
  const std::vector<int64_t> cube(static_cast<std::size_t>(image.dim()) - 2, 3);
  at::Tensor eroded = soft_eroded(image);
  at::Tensor skeleton = at::relu(image - max_pooled(eroded, cube));
  for (int64_t i = 0; i < iterations; ++i) {
    image = eroded;
    eroded = soft_eroded(image);
    const at::Tensor thin = at::relu(image - max_pooled(eroded, cube));
    skeleton = skeleton + at::relu(thin - skeleton * thin);
  }
  return skeleton;
}

struct SoftclDiceLoss : ChannelOptions {
  int64_t iter_ = 3;
  double smooth_nr = 1, smooth_dr = 1, smooth = 1e-4;
  void visit(auto& v) {
    ChannelOptions::visit(v);
    v("iter_", iter_, "erosions: half the width of the thickest tube", 0, 1000);
    v("smooth_nr", smooth_nr, "added to the numerators", 0, 1e9);
    v("smooth_dr", smooth_dr, "added to the denominators", 0, 1e9);
    v("smooth", smooth, "added to the denominator of the harmonic mean", 1e-12, 1e9);
  }
  at::Tensor compute(const LossInput& in) const {
    const auto [p, t] = channels(in);
    const auto share = [this](const at::Tensor& skeleton, const at::Tensor& within) {
      return ((skeleton * within).flatten(1).sum(1) + smooth_nr) /
             (skeleton.flatten(1).sum(1) + smooth_dr);
    };
    const at::Tensor precision = share(soft_skeleton(p, iter_), t);
    const at::Tensor sensitivity = share(soft_skeleton(t, iter_), p);
    return reduced(1 - 2 * (precision * sensitivity) / (precision + sensitivity + smooth));
  }
};
CYTRA_REGISTER(Loss, LossOf<SoftclDiceLoss>, "SoftclDiceLoss");

struct SoftDiceclDiceLoss : SoftclDiceLoss {
  double alpha = 0.5;
  void visit(auto& v) {
    SoftclDiceLoss::visit(v);
    v("alpha", alpha, "weight of the skeletons; Dice has the rest", 0, 1);
  }
  at::Tensor compute(const LossInput& in) const {
    DiceLoss dice;
    static_cast<ChannelOptions&>(dice) = *this;
    dice.smooth_nr = smooth_nr;
    dice.smooth_dr = smooth_dr;
    return (1 - alpha) * dice.compute(in) + alpha * SoftclDiceLoss::compute(in);
  }
};
CYTRA_REGISTER(Loss, LossOf<SoftDiceclDiceLoss>, "SoftDiceclDiceLoss");

}  // namespace
}  // namespace cytra::nn
