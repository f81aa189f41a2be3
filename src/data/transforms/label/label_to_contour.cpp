// LabelToContourd: 1 at the voxels of a mask that have a neighbour outside of it. Source:
// monai.transforms.LabelToContourd (a Laplace kernel; zeros beyond the border).
#include "data/sample/per_key.h"

namespace cytra::data {
namespace {

struct LabelToContourd : KeyOptions {
  std::string kernel_type = "Laplace";
  template <class V>
  void visit(V& v) {
    KeyOptions::visit(v);
    v("kernel_type", kernel_type, "the filter", {"Laplace"});
  }
  at::Tensor operator()(const at::Tensor& image) const {
    const int64_t dims = image.dim() - 1, taps = dims == 3 ? 27 : 9;
    std::vector<int64_t> shape(static_cast<std::size_t>(dims) + 2, 3);
    shape[0] = shape[1] = 1;
    at::Tensor kernel = at::full({taps}, -1.0F);
    kernel[taps / 2] = static_cast<double>(taps - 1);
    kernel = kernel.reshape(shape);
    const std::vector<int64_t> ones(static_cast<std::size_t>(dims), 1);
    const at::Tensor channels = image.unsqueeze(1);
    const at::Tensor edges = dims == 3 ? at::conv3d(channels, kernel, {}, ones, ones)
                                       : at::conv2d(channels, kernel, {}, ones, ones);
    return edges.squeeze(1).clamp(0, 1);
  }
};
CYTRA_REGISTER(Transform, PerKey<LabelToContourd>, "LabelToContourd");

}  // namespace
}  // namespace cytra::data
