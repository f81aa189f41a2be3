#pragma once
#include "config/visit.h"

namespace cytra::training {

/// Names and defaults of torch.amp.GradScaler.
struct GradScalerOptions {
  double init_scale = 65536, growth_factor = 2, backoff_factor = 0.5;
  int64_t growth_interval = 2000;
  void visit(auto& v) {
    v("init_scale", init_scale, "what the loss is multiplied with at first", 1e-6, 1e30);
    v("growth_factor",
      growth_factor,
      "factor of the scale after growth_interval good steps",
      1,
      1e6);
    v("backoff_factor",
      backoff_factor,
      "factor of the scale after gradients that are not finite",
      0,
      1);
    v("growth_interval", growth_interval, "good steps in a row before the scale grows", 1, 1e12);
  }
};

}  // namespace cytra::training
