#pragma once
// A model's pass, measured.
#include "app/benchmark/subject.h"
#include "nn/flop_counter.h"

namespace cytra::app {

/// The model's pass on random images. Results: its outputs.
Ready prepare_inference(const Subject& subject, const Variant& variant, int64_t batch);

/// FLOPs of a pass.
nn::Flops count_inference(const Subject& subject, int64_t batch);

}  // namespace cytra::app
