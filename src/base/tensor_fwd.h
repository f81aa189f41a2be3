#pragma once
// All that most public headers know of torch.
namespace at {
class Tensor;
}
namespace torch::nn {
class Module;
}
namespace cytra {
using Tensor = at::Tensor;
}
