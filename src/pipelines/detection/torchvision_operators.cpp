// Source: torchvision/csrc/ops/boxes/nms.cpp for the operator's schema.
#include "pipelines/detection/torchvision_operators.h"

#include <mutex>

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include "ops/boxes/boxes.h"

namespace cytra::pipelines {
namespace {

at::Tensor torchvision_nms(const at::Tensor& boxes, const at::Tensor& scores, double threshold) {
  return ops::nms(boxes, scores, at::zeros({scores.size(0)}, at::kLong), threshold)
      .to(boxes.device());
}

}  // namespace

void add_torchvision_operators() {
  static std::once_flag once;
  std::call_once(once, [] {
    // A program that links torchvision has it already.
    if (c10::Dispatcher::singleton().findSchema({"torchvision::nms", ""})) return;
    static torch::Library library(
        torch::Library::FRAGMENT, "torchvision", std::nullopt, __FILE__, __LINE__);
    library.def("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor", torchvision_nms);
  });
}

}  // namespace cytra::pipelines
