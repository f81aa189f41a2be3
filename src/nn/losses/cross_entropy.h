#pragma once
// Cross-entropy per voxel: of classes that exclude each other, or of masks, a channel each.
#include "nn/losses/channels.h"

namespace cytra::nn {

struct VoxelCrossEntropy {
  at::Tensor values;   // (N,[D,]H,W), of masks (N,K,[D,]H,W)
  at::Tensor weights;  // (N,[D,]H,W): what each voxel counts in a mean; undefined: 1
};

/// Of one channel the target is a mask, too. `weight`: of each class, of masks that of the voxels
/// in it. A target of several channels holds the probability of each class. Source:
/// torch.nn.functional.cross_entropy, binary_cross_entropy_with_logits (weight: its pos_weight).
VoxelCrossEntropy cross_entropy(const at::Tensor& logits,
                                const at::Tensor& target,
                                bool is_masks,
                                const std::vector<double>& weight,
                                double label_smoothing);

struct CrossEntropyLoss : ReducedOptions {
  std::vector<double> weight;
  std::optional<bool> multilabel;
  double label_smoothing = 0;
  template <class V>
  void visit(V& v) {
    v("weight", weight, "of each class; of masks that of the voxels in them", 0, 1e9);
    v("label_smoothing", label_smoothing, "share of a target that all classes get", 0, 1);
    v("multilabel",
      multilabel,
      "channels are masks of their own: binary cross-entropy of each; null: as the task says");
    ReducedOptions::visit(v);
  }
  at::Tensor compute(const at::Tensor& logits,
                     const at::Tensor& target,
                     const at::Tensor& mask) const;
};

}  // namespace cytra::nn
