#pragma once
// model.compile_model: steps that are recorded once per shape of batch and then replayed.
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "data/loader/batch.h"
#include "device/recorder.h"
#include "training/trainer/step.h"

namespace cytra::nn {
struct Model;
}

namespace cytra::training {

/// A step in two recordings: forward and backward pass, and the update; between them the trainer
/// reads the numbers of the step before, and its callbacks see the gradients. For each shape of
/// batch the first steps rehearse, then one records, and the first that are replayed are compared
/// with the same step without recording. Where a step can't be recorded, or differs, the training
/// continues without, after one line that says why. Both ways are the same operations on the same
/// numbers (the learning rate is on the device in both), so a resumed training may decide
/// otherwise.
class CompiledStep {
 public:
  /// Keeps references to all. Without `in_any_case` (model.compile_model: null), the first steps
  /// are timed: recording pays where the host takes at least half as long to start a step as the
  /// device to do it.
  CompiledStep(std::unique_ptr<device::Recorder> recorder,
               const TrainerOptions& options,
               nn::Model& model,
               Optimizer& optimizer,
               GradScaler& scaler,
               bool in_any_case);

  /// The loss of the pass over a batch; the gradients are the parameters'. `seed` sets the
  /// generators as the step needs them, before each time that it is made.
  at::Tensor gradients(const data::Batch& batch,
                       const std::function<void()>& seed,
                       const std::function<at::Tensor(const data::Batch&)>& pass);
  /// training::update() on the device, for the newest gradients.
  PendingStep update(const Rates& rates, const at::Tensor& loss);

 private:
  /// The recording of one work, and how often it was rehearsed before and checked after.
  struct RecordedWork {
    int64_t rehearsals = 0, checks = 0;
    std::unique_ptr<device::Recorder::Recording> recording;
  };
  struct Shape {
    data::Batch batch;  // whose memory is recorded
    RecordedWork gradients, update;
    bool is_told = false;  // that its steps are recorded
    bool is_steady =
        false;  // the newest gradients lie where its recording puts them, or there is none
  };
  std::vector<at::Tensor> run(RecordedWork& recorded,
                              const device::Recorder::Work& work,
                              const std::vector<at::Tensor>& changed,
                              const std::function<void()>& seed);
  std::vector<at::Tensor> check(RecordedWork& recorded,
                                const device::Recorder::Work& work,
                                const std::vector<at::Tensor>& changed,
                                const std::vector<at::Tensor>& before,
                                const std::function<void()>& seed);
  /// The shortest times that passes over a shape of batch took.
  struct Pace {
    int64_t passes = 0;
    double asked_s = INFINITY, done_s = INFINITY;  // until asked for, until done
  };
  at::Tensor time(const data::Batch& batch,
                  const std::function<at::Tensor(const data::Batch&)>& pass);
  bool pays(const Pace& pace) const;
  void give_up(const std::string& why);
  void forget_if_given_up();
  Shape* shape_of(const data::Batch& batch);

  std::unique_ptr<device::Recorder> recorder_;  // null: steps are made as they are
  const TrainerOptions& options_;
  Optimizer& optimizer_;
  GradScaler& scaler_;
  std::vector<at::Tensor> parameters_, buffers_, states_;
  at::Tensor lr_;                      // 0-d float on the device
  std::map<std::string, Pace> paces_;  // by shape, until it is known whether recording pays
  bool is_decided_;
  std::map<std::string, Shape> shapes_;
  Shape* now_ = nullptr;  // of the newest gradients; null: made as they are
  bool has_warned_of_shapes_ = false, has_told_of_watcher_ = false;
};

/// Makes the compiled step for model.compile_model. Null where steps stay as they are; where the
/// option is true, a line in the log says why.
std::unique_ptr<CompiledStep> compile_steps(const TrainerOptions& options,
                                            nn::Model& model,
                                            Optimizer& optimizer,
                                            GradScaler& scaler,
                                            bool is_alone);

}  // namespace cytra::training
