#include "training/task.h"

#include <cmath>

#include <ATen/ATen.h>

#include "data/target_judge.h"

namespace cytra::training {

std::vector<data::TargetMeaning> Task::target_meanings() const {
  return {};
}

void Task::validation_step(const data::Batch& batch) {
  const at::Tensor loss = training_step(batch).detach().to(at::kDouble);
  if (sums().front().device() != loss.device()) *losses_ = losses_->to(loss.device());
  losses_->add_(at::stack({loss, at::ones_like(loss)}));
}

Metrics Task::validation_end() {
  const at::Tensor sums = this->sums().front().cpu();
  losses_.reset();
  const double* numbers = sums.const_data_ptr<double>();
  return {{"loss", numbers[1] > 0 ? numbers[0] / numbers[1] : std::nan("")}};
}

std::vector<Tensor> Task::sums() {
  if (!losses_) losses_ = std::make_shared<Tensor>(at::zeros({2}, at::TensorOptions(at::kDouble)));
  return {*losses_};
}

std::map<std::string, Tensor> Task::preview(const data::Batch& /*batch*/) {
  return {};
}

}  // namespace cytra::training
