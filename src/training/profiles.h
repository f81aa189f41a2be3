#pragma once
// The kinds of Profile. Include only from .cpp files.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "perf/operator_profile.h"
#include "training/callback.h"
#include "training/profile.h"

namespace cytra::training {

/// A callback that has a profile from the first step of a training to the last.
class ProfilingCallback : public Callback {
 public:
  void on_fit_start(Context& context) final { profile_ = begin(context); }
  void on_step_end(Context&) final { profile_->end_step(); }
  void on_fit_end(Context&) final { finish(); }
  void on_exception(Context&, const std::string& /*what*/) final { finish(); }

 protected:
  virtual std::unique_ptr<Profile> begin(Context& context) = 0;
  Profile::Settings settings(const Context& context, const std::string& folder) const {
    return {name, folder, "step", context.state.step};
  }

 private:
  void finish() {
    if (const auto ended = std::exchange(profile_, nullptr)) ended->finish();
  }
  std::unique_ptr<Profile> profile_;
};

/// What is allocated on one kind of device, by phase (perf::Scope), and its course over the first
/// `steps`: table.txt, memory.svg and memory.json. A CPU's bytes are those of this thread and its
/// backward passes; a GPU's are all of torch's. `constant` is there already; `what` names it in the
/// table: "weights and optimizer".
std::unique_ptr<Profile> memory_profile(Profile::Settings settings,
                                        c10::DeviceType kind,
                                        const std::vector<at::Tensor>& constant,
                                        const std::string& what,
                                        int64_t steps);

struct OperationProfileOptions {
  /// Which steps are recorded.
  struct Schedule {
    int64_t wait = 1, warmup = 1, active = 3, repeat = 1;
    void visit(auto& v) {
      v("wait", wait, "steps to leave out first", 0, 1e9);
      v("warmup", warmup, "steps with the tracing set up, not recorded", 0, 1e9);
      v("active", active, "steps to record", 1, 1000);
      v("repeat", repeat, "how often to do that; 0: until the training ends", 0, 1e6);
    }
    int64_t first() const { return wait + warmup; }
    int64_t cycle() const { return first() + active; }
  };
  Schedule schedule;
  perf::OperatorProfileOptions recorded;
  std::string sort_by = "cuda_time_total";  // one of perf::operator_sort_keys(); without a GPU the
                                            // same of the CPU
  int64_t row_limit = 20;                   // -1: all
  std::function<std::string(int64_t)> trace = nullptr;  // the name of each trace, by its number
};
/// The operations of some steps: table.txt and traces.
std::unique_ptr<Profile> operation_profile(Profile::Settings settings,
                                           OperationProfileOptions options);

/// What is copied, and where the host waits for the device: table.txt.
std::unique_ptr<Profile> transfer_profile(Profile::Settings settings, c10::Device device);

}  // namespace cytra::training
