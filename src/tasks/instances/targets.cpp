#include "tasks/instances/targets.h"

#include <ATen/ATen.h>

#include "ops/labels/flow_labels.h"

namespace cytra::tasks {
namespace {

/// Every n-th voxel along the last dimensions.
at::Tensor on_grid(at::Tensor image, const std::vector<int64_t>& grid) {
  const auto dims = std::ssize(grid);
  for (int64_t d = 0; d < dims; ++d)
    image = image.slice(d - dims, 0, {}, grid[static_cast<std::size_t>(d)]);
  return image;
}

/// on_grid()'s values, repeated to `size`.
at::Tensor from_grid(at::Tensor values, const std::vector<int64_t>& grid, at::IntArrayRef size) {
  const auto dims = std::ssize(grid);
  for (int64_t d = 0; d < dims; ++d) {
    values = values.repeat_interleave(grid[static_cast<std::size_t>(d)], d - dims)
                 .narrow(d - dims, 0, size[static_cast<std::size_t>(d)]);
  }
  return values;
}

}  // namespace

at::Tensor InstanceTargets::of(const at::Tensor& labels) const {
  std::vector<at::Tensor> targets;
  for (const at::Tensor& image : labels.select(1, 0).to(at::kCPU, at::kInt).unbind(0)) {
    const at::Tensor unknown = ignore_index ? image.eq(*ignore_index) : at::Tensor();
    const at::Tensor objects = ignore_index ? image.masked_fill(unknown, 0) : image;
    const auto known = [&](const at::Tensor& object) {
      return (ignore_index ? object.masked_fill(on_grid(unknown, grid), -1) : object).unsqueeze(0);
    };
    if (method == "flows") {
      targets.push_back(
          at::cat({ops::masks_to_flows(objects), known(objects.ne(0).to(at::kFloat))}));
    } else {  // StarDist2D's depth is that of the coarse objects
      const at::Tensor depth = spatial_dims == 2
                                   ? ops::edt_probability(on_grid(objects, grid))
                                   : on_grid(ops::edt_probability(objects, anisotropy), grid);
      const at::Tensor stars = at::cat({known(depth), ops::star_distances(objects, rays, grid)});
      targets.push_back(from_grid(stars, grid, image.sizes()));
    }
  }
  return at::stack(targets);
}

}  // namespace cytra::tasks
