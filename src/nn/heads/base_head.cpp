// BaseHead: the backbone's features are the output. Source: cyto_dl.nn.head.BaseHead; MaskHead's
// mask is the task's `mask_key`.

#include "base/error.h"
#include "nn/heads/output_head.h"

namespace cytra::nn {
namespace {

struct BaseHead final : OutputHead {
  struct Options : OutputHeadOptions {
    void check() const {
      if (!in_channels || !out_channels || *in_channels == *out_channels) return;
      throw ConfigError(
          "BaseHead: out_channels={}, but it hands on the {} features of the backbone: expected "
          "{}, or a ResBlocksHead",
          *out_channels,
          *in_channels,
          *in_channels);
    }
  };
  explicit BaseHead(const Options& /*options*/) {}
  at::Tensor forward(const at::Tensor& features) override { return features; }
};
CYTRA_REGISTER(OutputHead, BaseHead, "BaseHead", "MaskHead");

}  // namespace
}  // namespace cytra::nn
