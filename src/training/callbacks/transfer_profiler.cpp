// TransferProfiler: what a step copies, and where the host waits for the device; on demand this is
// an error. Source: torch.cuda.set_sync_debug_mode, with the same modes; it works on a GPU only
// and does not say where.
#include <set>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/strings.h"
#include "config/registry.h"
#include "nn/call.h"
#include "nn/model.h"
#include "perf/transfers.h"
#include "training/callback.h"
#include "training/transfer_table.h"

namespace cytra::training {
namespace {

/// The names of the layers that the model runs, from outside to inside.
class LayerNames final : public nn::Watcher {
 public:
  explicit LayerNames(nn::Model& model) : before_(std::exchange(nn::watcher, this)) {
    for (const auto& module : model.named_modules()) names_[module.value().get()] = module.key();
  }
  ~LayerNames() override { nn::watcher = before_; }
  LayerNames(const LayerNames&) = delete;
  LayerNames& operator=(const LayerNames&) = delete;

  void begin(const torch::nn::Module& module, const at::Tensor& /*input*/) override {
    open_.push_back(&module);
  }
  void end(const at::Tensor& /*output*/) override { open_.pop_back(); }
  std::string newest() const {
    const auto name = open_.empty() ? names_.end() : names_.find(open_.back());
    return name == names_.end() ? "" : name->second;
  }

 private:
  nn::Watcher* before_;
  std::map<const torch::nn::Module*, std::string> names_;
  std::vector<const torch::nn::Module*> open_;
};

class TransferProfiler final : public Callback {
 public:
  struct Options {
    std::string dirpath, forbid = "none";
    template <class V>
    void visit(V& v) {
      v("dirpath", dirpath, "folder of the table; \"\": none");
      v("forbid",
        forbid,
        "a step that makes the host wait for the device is reported, or ends the run",
        {"none", "warn", "error"});
    }
  };
  explicit TransferProfiler(const Options& options) : options_(options) {}

  void on_fit_start(Context& context) override {
    if (!options_.dirpath.empty()) make_folders(options_.dirpath);
    nn::Model& model = context.task.model();
    is_cpu_ = model.parameters().front().is_cpu();
    layers_.emplace(model);
    watch_.emplace(model.parameters().front().device(), [this] { return layers_->newest(); });
    watch_->begin_step(context.state.step + 1);
  }
  void on_step_end(Context& context) override {
    steps_ += 1;
    watch_->begin_step(context.state.step + 1);
    if (!forbids() || steps_ == 1) return;  // what happens once is no matter
    for (const auto& [place, count] : watch_->found()) {
      const bool is_new = count.last_step == context.state.step && told_.insert(place).second;
      if (is_new && is_forbidden(place)) warn(place, context.state.step);
    }
  }
  void on_fit_end(Context&) override { finish(); }
  void on_exception(Context&, const std::string& /*what*/) override { finish(); }

 private:
  bool forbids() const { return options_.forbid != "none"; }
  /// Whether the transfer happens in every step and makes the host wait. A CPU's optimizer and
  /// loader may read values: nothing waits there.
  bool is_forbidden(const perf::TransferPlace& place) const {
    if (!place.waits) return false;
    const std::string& phase = place.phase;
    if (phase == "optimizer" || phase == "data") return !is_cpu_;
    return phase == "forward" || phase == "backward" ||
           (starts_with(phase, "callbacks.") &&
            (ends_with(phase, ".on_batch_start") || ends_with(phase, ".on_before_step") ||
             ends_with(phase, ".on_step_end")));
  }

  void warn(const perf::TransferPlace& place, int64_t step) const {
    const std::string what = fmt::format(
        "step {} makes the host wait for the device ({} in {}): {}; it is forbidden by "
        "performance.forbid_transfers={}",
        step,
        name_of(place.kind),
        place.phase,
        text_of(place),
        options_.forbid);
    if (options_.forbid == "error") throw ConfigError(what);
    log::warn("{}", what);
  }

  void finish() {
    if (!watch_) return;
    const perf::Transfers transfers = watch_->found();
    watch_.reset();
    layers_.reset();
    if (forbids() && steps_ < 2)
      log::warn("{}: nothing was checked: the first step is left out, and there was no other",
                name);
    if (options_.dirpath.empty()) return;
    report_transfers(transfers, steps_, "step", options_.dirpath);
  }

  Options options_;
  bool is_cpu_ = true;
  int64_t steps_ = 0;
  std::set<perf::TransferPlace> told_;
  std::optional<LayerNames> layers_;
  std::optional<perf::TransferWatch> watch_;  // asks layers_
};
CYTRA_REGISTER(Callback, TransferProfiler, "TransferProfiler");

}  // namespace
}  // namespace cytra::training
