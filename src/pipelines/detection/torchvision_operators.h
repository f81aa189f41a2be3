#pragma once

namespace cytra::pipelines {

/// TorchScript of torchvision's detectors calls operators of its own; from now on there is
/// torchvision::nms.
void add_torchvision_operators();

}  // namespace cytra::pipelines
