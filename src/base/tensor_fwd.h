#pragma once
// The declarations of torch that most public headers need.
namespace at {
class Tensor;
}
namespace torch::nn {
class Module;
}
namespace cytra {
using Tensor = at::Tensor;
}
