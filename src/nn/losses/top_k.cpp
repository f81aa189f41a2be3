// TopKLoss: the cross-entropy of the voxels that are hardest. Arguments and values of nnU-Net's
// nnunetv2.training.loss.robust_ce_loss.TopKLoss; `k` is a share of the voxels that count.
#include <ATen/ATen.h>

#include "config/registry.h"
#include "nn/losses/cross_entropy.h"

namespace cytra::nn {
namespace {

struct TopKLoss : CrossEntropyLoss {
  double k = 10;
  void visit(auto& v) {
    v("k", k, "percent of the voxels", 0, 100);
    CrossEntropyLoss::visit(v);
  }
  at::Tensor compute(const LossInput& in) const {
    at::Tensor values = voxels(in).values;
    values = in.mask.defined() ? values.masked_select(in.mask.ne(0)) : values.flatten();
    if (values.numel() == 0) return values.sum();
    const auto hard = static_cast<int64_t>(static_cast<double>(values.numel()) * k / 100);
    return reduced(std::get<0>(values.topk(std::max<int64_t>(hard, 1), 0, true, false)));
  }
};
CYTRA_REGISTER(Loss, LossOf<TopKLoss>, "TopKLoss");

}  // namespace
}  // namespace cytra::nn
