// PyTorchProfiler: torch's profiler over a few steps; a trace and a table of operations. Source:
// lightning.pytorch.profilers.PyTorchProfiler, torch.profiler.schedule.
#include <ATen/ATen.h>
#include <ATen/record_function.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "config/registry.h"
#include "device/backend.h"
#include "nn/model.h"
#include "perf/operator_profile.h"
#include "training/callback.h"

namespace cytra::training {
namespace {
using config::Unused;

/// Which steps are recorded.
struct Schedule {
  int64_t wait = 1, warmup = 1, active = 3, repeat = 1;
  template <class V>
  void visit(V& v) {
    v("wait", wait, "steps to leave out first", 0, 1e9);
    v("warmup", warmup, "steps with the tracing set up, not recorded", 0, 1e9);
    v("active", active, "steps to record", 1, 1000);
    v("repeat", repeat, "how often to do that; 0: until the training ends", 0, 1e6);
  }
};

class PyTorchProfiler final : public Callback {
 public:
  struct Options {
    std::string dirpath = "profiler";
    std::optional<std::string> sort_by_key;
    std::vector<std::string> activities{"cpu", "cuda"};
    Schedule schedule;
    int64_t row_limit = 20;
    bool export_to_chrome = true, record_shapes = false, profile_memory = false, with_stack = false;
    template <class V>
    void visit(V& v) {
      v("dirpath", dirpath, "folder of the files; of trainer.profiler: profiler in the run folder");
      v("schedule", schedule, "which steps are recorded");
      v("activities",
        activities,
        "cpu, cuda: what is recorded; cuda only where the model is there");
      v("export_to_chrome", export_to_chrome, "write a trace for Perfetto and TensorBoard");
      v("row_limit", row_limit, "operations in the table; -1: all", -1, 1e9);
      v("sort_by_key",
        sort_by_key,
        "order of the table; null: cuda_time_total, without a GPU cpu_time_total");
      v("record_shapes", record_shapes, "the shapes of inputs, in the trace");
      v("profile_memory", profile_memory, "the memory that each operation takes");
      v("with_stack", with_stack, "of torch.profiler; false: there is no Python stack");
      v("with_flops", Unused{{"false"}}, "the model's summary has them");
      v("with_modules", Unused{{"false"}}, "of TorchScript");
      v("group_by_input_shapes", Unused{{"false"}}, "of Lightning");
      v("emit_nvtx", Unused{{"false"}}, "of Lightning");
      v("record_module_names", Unused{{"false"}}, "of Lightning");
      v("filename", Unused{}, "files are named as TensorBoard expects them");
    }
    void check() const {
      if (with_stack)
        throw ConfigError(
            "with_stack: torch records the stacks of Python and TorchScript, of which there are "
            "none "
            "here; expected false (the trace has phases and operations; trainer.profiler=transfers "
            "names layers and functions)");
      std::vector<std::string> keys;
      for (const auto& [key, value] : perf::operator_sort_keys()) keys.push_back(key);
      if (sort_by_key && std::find(keys.begin(), keys.end(), *sort_by_key) == keys.end())
        throw ConfigError(
            fmt::format("sort_by_key: no '{}'.{}", *sort_by_key, suggestion(*sort_by_key, keys)));
      for (const std::string& activity : activities) {
        if (activity != "cpu" && activity != "cuda")
          throw ConfigError(fmt::format("activities: expected cpu or cuda, found '{}'", activity));
      }
    }
  };
  explicit PyTorchProfiler(const Options& options) : options_(options) {}

  void on_fit_start(Context& context) override {
    make_folders(options_.dirpath);
    const auto parameters = context.task.model().parameters();
    const bool asks = std::find(options_.activities.begin(), options_.activities.end(), "cuda") !=
                      options_.activities.end();
    records_gpu_ =
        asks && !parameters.empty() && device::is_accelerator(parameters.front().device());
    if (asks && !records_gpu_)
      log::info("{}: the model is on the CPU, nothing of a GPU is recorded", name);
    profiler_.emplace(perf::OperatorProfileOptions{
        records_gpu_, options_.record_shapes, options_.profile_memory});
    step_ = 0;
    begin_step();
  }
  void on_step_end(Context&) override {
    end_step();
    step_ += 1;
    begin_step();
  }
  void on_fit_end(Context&) override { finish(); }
  void on_exception(Context&, const std::string& /*what*/) override { finish(); }

 private:
  /// The place of a step in its cycle; -1 after the last one.
  int64_t place() const {
    const Schedule& plan = options_.schedule;
    const int64_t cycle = plan.wait + plan.warmup + plan.active;
    return plan.repeat > 0 && step_ >= plan.repeat * cycle ? -1 : step_ % cycle;
  }
  void begin_step() {
    const Schedule& plan = options_.schedule;
    const int64_t first = plan.wait + plan.warmup;
    if (plan.warmup > 0 && place() == plan.wait) profiler_->prepare();
    if (place() == first) profiler_->start();
    if (!profiler_->is_recording()) return;
    mark_.emplace(at::RecordScope::USER_SCOPE);
    mark_->before(fmt::format("ProfilerStep#{}", step_));
  }
  void end_step() {
    const Schedule& plan = options_.schedule;
    if (!profiler_->is_recording()) return;
    mark_.reset();
    if (place() == plan.wait + plan.warmup + plan.active - 1) write();
  }
  void finish() {
    if (!profiler_) return;
    if (profiler_->is_recording()) {
      mark_.reset();
      write();
    } else if (files_ == 0) {
      log::warn(
          "{}: nothing was recorded: the training ended at step {}, the schedule begins after {}",
          name,
          step_,
          options_.schedule.wait + options_.schedule.warmup);
    }
    profiler_.reset();
  }

  void write() {
    files_ += 1;
    char host[256] = "host";
    gethostname(host, sizeof host - 1);
    const std::string trace =
        fmt::format("{}/{}_{}.{}.pt.trace.json", options_.dirpath, host, getpid(), files_);
    profiler_->stop(rows_, options_.export_to_chrome ? trace : "");
    std::string key = options_.sort_by_key.value_or("cuda_time_total");
    if (!records_gpu_ && key.find("cuda") != std::string::npos)
      key.replace(key.find("cuda"), 4, "cpu");
    const std::string table =
        perf::to_text(rows_, key, options_.row_limit < 0 ? INT64_MAX : options_.row_limit);
    write_file(options_.dirpath + "/table.txt", table);
    log::info("operations by {} ({}/table.txt):\n{}", key, options_.dirpath, table);
    if (options_.export_to_chrome) log::info("trace for https://ui.perfetto.dev: {}", trace);
  }

  Options options_;
  bool records_gpu_ = false;
  int64_t step_ = 0, files_ = 0;
  perf::OperatorRows rows_;  // of all cycles
  std::optional<perf::OperatorProfiler> profiler_;
  std::optional<at::RecordFunction> mark_;  // after profiler_: ends first
};
CYTRA_REGISTER(Callback, PyTorchProfiler, "PyTorchProfiler");

}  // namespace
}  // namespace cytra::training
