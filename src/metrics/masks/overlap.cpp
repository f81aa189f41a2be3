// DiceMetric and MeanIoU: how far predicted and true masks overlap. Source: monai.metrics, with
// its numbers and defaults.
#include <ATen/ATen.h>

#include "config/registry.h"
#include "metrics/masks/mask_metric.h"

namespace cytra::metrics {
namespace {

struct OverlapOptions : MaskOptions {
  bool ignore_empty = true;
  void visit(auto& v) {
    MaskOptions::visit(v);
    v("ignore_empty",
      ignore_empty,
      "classes that an image's truth does not have: true: they do not count; false: they count as "
      "1 where they are not predicted either, else as 0");
  }
};

enum class Overlap { dice, iou };

/// 2 |P and T| / (|P| + |T|), or |P and T| / |P or T|.
template <Overlap kind>
class OverlapMetric final : public ClassMeans {
 public:
  using Options = OverlapOptions;
  explicit OverlapMetric(const Options& options)
      : ClassMeans(kind == Overlap::dice ? "dice" : "iou", options, true),
        ignore_empty_(options.ignore_empty) {}

 private:
  Values measure(const Compared& batch) const override {
    const at::Tensor shared = voxels_of(batch.prediction * batch.truth),
                     true_voxels = voxels_of(batch.truth);
    const at::Tensor both = true_voxels + voxels_of(batch.prediction);
    const at::Tensor overlap = kind == Overlap::dice ? 2 * shared / both : shared / (both - shared);
    return {at::where(both.eq(0), 1, overlap),
            ignore_empty_ ? true_voxels.gt(0) : at::ones_like(true_voxels, at::kBool)};
  }
  bool ignore_empty_;
};
CYTRA_REGISTER(Metric, OverlapMetric<Overlap::dice>, "DiceMetric");
CYTRA_REGISTER(Metric, OverlapMetric<Overlap::iou>, "MeanIoU");

}  // namespace
}  // namespace cytra::metrics
