#include "tasks/instances/targets.h"

#include <ATen/ATen.h>

#include "ops/labels/flow_labels.h"

namespace cytra::tasks {

at::Tensor InstanceTargets::of(const at::Tensor& labels) const {
  std::vector<at::Tensor> targets;
  for (const at::Tensor& image : labels.select(1, 0).to(at::kCPU, at::kInt).unbind(0)) {
    const at::Tensor unknown = ignore_index ? image.eq(*ignore_index) : at::Tensor();
    const at::Tensor objects = ignore_index ? image.masked_fill(unknown, 0) : image;
    const auto known = [&](const at::Tensor& object) {
      return (ignore_index ? object.masked_fill(unknown, -1) : object).unsqueeze(0);
    };
    if (method == "flows") {
      targets.push_back(
          at::cat({ops::masks_to_flows(objects), known(objects.ne(0).to(at::kFloat))}));
    } else {
      targets.push_back(at::cat(
          {known(ops::edt_probability(objects, anisotropy)), ops::star_distances(objects, rays)}));
    }
  }
  return at::stack(targets);
}

}  // namespace cytra::tasks
