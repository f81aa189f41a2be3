#pragma once
// A model's pass as a CUDA graph, in libcytra_cuda.so. For engines/cudagraph.cpp.
#include <functional>
#include <string>
#include <vector>

#include "inference/engines/entry.h"

namespace cytra::inference {

struct GraphTask {
  std::function<std::vector<Tensor>(const Tensor& windows)> forward;
  const Tensor& example;
  std::string text;
};
using MakeGraph = FixedEngine* (*)(const GraphTask& task);
constexpr char kMakeGraph[] = "cytra_make_graph";

}  // namespace cytra::inference
