#pragma once
// A stage of the Swin transformer: attention inside of windows, which every second block shifts.
#include <map>
#include <mutex>

#include "nn/blocks/transformer.h"

namespace cytra::nn {

struct SwinOptions {
  Sizes window;  // voxels per dimension
  int64_t heads = 1;
  double mlp_ratio = 4;
  bool qkv_bias = true;
  double drop = 0, attention_drop = 0;
  std::vector<double> path_drop;    // of each block: the share of images that pass it by
  std::string merging = "merging";  // the order of neighbours: MONAI's PatchMerging or mergingv2
};

/// monai.networks.nets.swin_unetr.BasicLayer: blocks, then neighbours become one position, with
/// twice the features.
class SwinStage final : public torch::nn::Module {
 public:
  SwinStage(int64_t features, const SwinOptions& options);
  /// (N,C,[D,]H,W), even sides -> (N,2C,...), half the sides. `recompute`: gradient_checkpointing.
  at::Tensor forward(const at::Tensor& image, bool recompute);

 private:
  /// Where the windows of an image lie.
  struct Windows {
    Sizes sides, padded, window, shift;
    bool is_shifted = false;
    at::Tensor far;  // (windows, voxels, voxels): of what only the shift brought into one window
  };
  struct Attention;
  struct Block;
  const Windows& windows_of(const at::Tensor& x, bool is_shifted);
  SwinOptions options_;
  std::vector<std::shared_ptr<Block>> blocks_;
  std::shared_ptr<Linear> reduction_;
  std::shared_ptr<LayerNorm> norm_;
  std::mutex mutex_;                                   // of windows_: threads may share the model
  std::map<std::pair<Sizes, bool>, Windows> windows_;  // by the image's sides
};

}  // namespace cytra::nn
