#pragma once
// Training steps as CUDA graphs, in libcytra_cuda.so: a MakeStepRecorder by this name.

namespace cytra::training {

constexpr char kMakeStepGraph[] = "cytra_make_step_graph";

}  // namespace cytra::training
