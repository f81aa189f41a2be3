// MemoryProfiler: what each phase of training allocates, leaves allocated and takes of the device,
// and the course of the memory over the first steps.
#include <optional>

#include "base/files.h"
#include "config/registry.h"
#include "nn/model.h"
#include "training/callback.h"
#include "training/memory_meter.h"
#include "training/optimizer.h"

namespace cytra::training {
namespace {

class MemoryProfiler final : public Callback {
 public:
  struct Options {
    std::string dirpath = "profiler";
    int64_t steps = 3;
    template <class V>
    void visit(V& v) {
      v("dirpath", dirpath, "folder of the files; of trainer.profiler: profiler in the run folder");
      v("steps",
        steps,
        "steps in the timeline; the peaks are those of the whole training",
        1,
        1000);
    }
  };
  explicit MemoryProfiler(const Options& options) : options_(options) {}

  void on_fit_start(Context& context) override {
    make_folders(options_.dirpath);
    const std::vector<at::Tensor> parameters = context.task.model().parameters();
    meter_ = std::make_shared<MemoryMeter>(parameters.empty() ? c10::kCPU
                                                              : parameters.front().device().type());
    for (const at::Tensor& parameter : parameters) {
      meter_->add(parameter);
      if (parameter.grad().defined()) meter_->add(parameter.grad());
    }
    for (const at::Tensor& buffer : context.task.model().buffers()) meter_->add(buffer);
    for (const auto& [key, tensor] : context.optimizer.state()) meter_->add(tensor);
    meter_->start();
    watching_.emplace(meter_);
  }
  void on_step_end(Context& context) override {
    steps_ += 1;
    meter_->end_step(context.state.step, steps_ == options_.steps);
  }
  void on_fit_end(Context&) override { finish(); }
  void on_exception(Context&, const std::string& /*what*/) override { finish(); }

 private:
  void finish() {
    if (!watching_) return;
    watching_.reset();
    meter_->stop();
    meter_->write(options_.dirpath, "weights and optimizer");
  }

  Options options_;
  int64_t steps_ = 0;
  std::shared_ptr<MemoryMeter> meter_;
  std::optional<WatchMemory> watching_;
};
CYTRA_REGISTER(Callback, MemoryProfiler, "MemoryProfiler");

}  // namespace
}  // namespace cytra::training
