#include "tasks/target_scale.h"

#include <vector>

#include <ATen/ATen.h>

namespace cytra::tasks {

TargetScale::TargetScale(const config::Node& decoder) {
  const auto mean = decoder.get<std::vector<double>>("mean", {});
  if (mean.empty()) return;
  mean_ = at::tensor(mean, at::kFloat);
  std_ = at::tensor(decoder.get<std::vector<double>>("std"), at::kFloat);
}

void TargetScale::write(const at::Tensor& mean,
                        const at::Tensor& deviation,
                        config::Node& decoder) {
  const auto list = [](const at::Tensor& numbers) {
    const double* begin = numbers.const_data_ptr<double>();
    return config::Node::make_list(std::vector<double>(begin, begin + numbers.numel()));
  };
  decoder.set("mean", list(mean));
  decoder.set("std", list(at::where(deviation.gt(0), deviation, 1)));
}

at::Tensor TargetScale::scaled(const at::Tensor& target) const {
  if (!is_there()) return target;
  std::vector<int64_t> shape(static_cast<std::size_t>(target.dim()), 1);
  shape[1] = -1;
  if (mean_.device() != target.device()) {  // once: each copy makes the host wait
    mean_ = mean_.to(target.device());
    std_ = std_.to(target.device());
  }
  return (target - mean_.view(shape)) / std_.view(shape);
}

}  // namespace cytra::tasks
