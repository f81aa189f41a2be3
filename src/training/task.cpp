#include "training/task.h"

#include "data/survey/check_targets.h"
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

std::map<std::string, Tensor> Task::preview(const data::Batch& /*batch*/) {
  return {};
}

}  // namespace cytra::training
