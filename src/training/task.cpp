#include "training/task.h"

#include <ATen/ATen.h>

#include "data/loader/batch.h"
#include "data/survey/check_targets.h"
#include "report/findings.h"
#include "training/mean_loss.h"

namespace cytra::training {

std::vector<data::TargetMeaning> Task::target_meanings() const {
  return {};
}

MeanLoss& Task::losses() {
  if (!losses_) losses_ = std::make_shared<MeanLoss>();
  return *losses_;
}

void Task::validation_step(const data::Batch& batch) {
  losses().add(training_step(batch));
}

Metrics Task::validation_end() {
  return {{"loss", losses().take()}};
}

std::vector<Tensor> Task::sums() {
  return {losses().sums()};
}

report::Findings Task::findings() {
  return {};
}

std::map<std::string, Tensor> Task::preview(const data::Batch& /*batch*/) {
  return {};
}

std::map<std::string, Tensor> Task::preview_input(const data::Batch& batch) {
  const auto image = batch.tensors.find(x_key());
  if (image == batch.tensors.end()) return {};
  return {{"input", image->second[0]}};
}

}  // namespace cytra::training
