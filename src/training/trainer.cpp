#include "training/trainer.h"

#include "training/trainer/training.h"

namespace cytra::training {

Trainer::Trainer(TrainerOptions options,
                 Task& task,
                 Optimizer& optimizer,
                 Scheduler& scheduler,
                 std::vector<std::shared_ptr<Callback>> callbacks,
                 std::vector<std::shared_ptr<Logger>> loggers,
                 config::Node config,
                 Processes* processes)
    : training_(std::make_unique<Training>(std::move(options),
                                           task,
                                           optimizer,
                                           scheduler,
                                           std::move(callbacks),
                                           std::move(loggers),
                                           std::move(config),
                                           processes)) {}
Trainer::~Trainer() = default;

void Trainer::resume(const std::string& path, bool strict) {
  training_->resume(path, strict);
}
TrainState& Trainer::state() {
  return training_->state();
}
void Trainer::fit(data::DataLoader& train, data::DataLoader& valid) {
  training_->fit(train, valid);
}
Metrics Trainer::evaluate(data::DataLoader& loader,
                          const std::string& stage,
                          const std::string& checkpoint) {
  return training_->evaluate(loader, stage, checkpoint);
}
void Trainer::save(const std::string& path) {
  training_->save(path);
}
int Trainer::signal() const {
  return training_->stop().signal();
}
const data::Timing& Trainer::timing() const {
  return training_->log().timing();
}

}  // namespace cytra::training
