#pragma once
// The part of a network of several outputs (MultiHead) behind its backbone, one for each output.
#include "config/registry.h"
#include "nn/blocks/layer.h"

namespace cytra::nn {

/// Keys that every head takes; null: the backbone's.
struct OutputHeadOptions {
  std::optional<int64_t> spatial_dims, in_channels, out_channels;
  void visit(auto& v) {
    v("spatial_dims", spatial_dims, "null: the backbone's", 2, 3);
    v("in_channels", in_channels, "features; null: the backbone's out_channels", 1, 1e5);
    v("out_channels", out_channels, "logits K; null: as many", 1, 1e5);
  }
};

/// Features (N,C,[D,]H,W) -> logits (N,K,[D,]H,W). Registered under its class name in CytoDL.
struct OutputHead : Layer {
  static constexpr const char* kKind = "output head";
};

}  // namespace cytra::nn
