#pragma once

namespace cytra::pipelines {

/// Registers torchvision::nms, which TorchScript of torchvision's detectors calls.
void add_torchvision_operators();

}  // namespace cytra::pipelines
