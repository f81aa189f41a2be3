// Part of training/profiles.h: PyTorchProfiler, torch's profiler over a few steps; a trace and a
// table of operations. Source: lightning.pytorch.profilers.PyTorchProfiler,
// torch.profiler.schedule.

#include <ATen/record_function.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "base/strings.h"
#include "config/registry.h"
#include "device/backend.h"
#include "nn/model.h"
#include "training/profiles.h"

namespace cytra::training {
namespace {
using config::Unused;

class OperationProfile final : public Profile {
 public:
  OperationProfile(Settings settings, OperationProfileOptions options)
      : Profile(std::move(settings)), options_(std::move(options)), profiler_(options_.recorded) {
    begin_step();
  }
  void finish() override {
    if (profiler_.is_recording()) return write();
    if (files_ > 0) return;
    log::warn("{}: nothing was recorded: the last {} was {}, the recording begins after {}",
              settings_.name,
              settings_.unit,
              steps_,
              options_.schedule.first());
  }

 private:
  void step_ended() override {
    if (profiler_.is_recording()) {
      mark_.reset();
      if (steps_ % options_.schedule.cycle() == 0) write();
    }
    begin_step();
  }
  void begin_step() {
    const OperationProfileOptions::Schedule& plan = options_.schedule;
    const bool is_over = plan.repeat > 0 && steps_ >= plan.repeat * plan.cycle();
    const int64_t place = is_over ? -1 : steps_ % plan.cycle();
    if (plan.warmup > 0 && place == plan.wait) profiler_.prepare();
    if (place == plan.first()) profiler_.start();
    if (!profiler_.is_recording()) return;
    mark_.emplace(at::RecordScope::USER_SCOPE);
    mark_->before(fmt::format("ProfilerStep#{}", steps_));
  }

  void write() {
    mark_.reset();
    files_ += 1;
    const std::string trace =
        options_.trace
            ? fmt::format("{}/{}.pt.trace.json", settings_.folder, options_.trace(files_))
            : "";
    profiler_.stop(rows_, trace);
    std::string key = options_.sort_by;
    if (!options_.recorded.cuda && key.find("cuda") != std::string::npos)
      key.replace(key.find("cuda"), 4, "cpu");
    const std::string table =
        perf::to_text(rows_, key, options_.row_limit < 0 ? INT64_MAX : options_.row_limit);
    log::info("operations by {} ({}):\n{}", key, write_table(table), table);
    if (options_.trace) log::info("trace for https://ui.perfetto.dev: {}", trace);
  }

  const OperationProfileOptions options_;
  int64_t files_ = 0;
  perf::OperatorRows rows_;  // all cycles together
  perf::OperatorProfiler profiler_;
  std::optional<at::RecordFunction> mark_;  // after profiler_: ends first
};

class PyTorchProfiler final : public ProfilingCallback {
 public:
  struct Options {
    std::string dirpath = "profiler";
    std::optional<std::string> sort_by_key;
    std::vector<std::string> activities{"cpu", "cuda"};
    OperationProfileOptions::Schedule schedule;
    int64_t row_limit = 20;
    bool export_to_chrome = true, record_shapes = false, profile_memory = false, with_stack = false;
    void visit(auto& v) {
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
            "none here; expected false (the trace has phases and operations; "
            "trainer.profiler=transfers names layers and functions)");
      const std::vector<std::string> keys = keys_of(perf::operator_sort_keys());
      if (sort_by_key && !contains(keys, *sort_by_key))
        throw ConfigError("sort_by_key: no '{}'.{}", *sort_by_key, suggestion(*sort_by_key, keys));
      for (const std::string& activity : activities) {
        if (activity != "cpu" && activity != "cuda")
          throw ConfigError("activities: expected cpu or cuda, found '{}'", activity);
      }
    }
  };
  explicit PyTorchProfiler(const Options& options) : options_(options) {}

 private:
  std::unique_ptr<Profile> begin(Context& context) override {
    const auto parameters = context.task.model().parameters();
    const bool asks = contains(options_.activities, "cuda");
    OperationProfileOptions profile;
    profile.schedule = options_.schedule;
    profile.recorded.cuda =
        asks && !parameters.empty() && device::is_accelerator(parameters.front().device());
    profile.recorded.record_shapes = options_.record_shapes;
    profile.recorded.profile_memory = options_.profile_memory;
    if (asks && !profile.recorded.cuda)
      log::info("{}: the model is on the CPU, nothing of a GPU is recorded", name);
    if (options_.sort_by_key) profile.sort_by = *options_.sort_by_key;
    profile.row_limit = options_.row_limit;
    char host[256] = "host";
    gethostname(host, sizeof host - 1);
    if (options_.export_to_chrome) {
      profile.trace = [process = fmt::format("{}_{}", host, getpid())](int64_t number) {
        return fmt::format("{}.{}", process, number);
      };
    }
    return operation_profile(settings(context, options_.dirpath), std::move(profile));
  }
  const Options options_;
};
CYTRA_REGISTER(Callback, PyTorchProfiler, "PyTorchProfiler");

}  // namespace

std::unique_ptr<Profile> operation_profile(Profile::Settings settings,
                                           OperationProfileOptions options) {
  return std::make_unique<OperationProfile>(std::move(settings), std::move(options));
}

}  // namespace cytra::training
