// Part of training/profiles.h: TransferProfiler, what a step copies, and where the host waits
// for the device; on demand this is an error. Source: torch.cuda.set_sync_debug_mode, with the same
// modes; it works on a GPU only and does not say where.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/error.h"
#include "base/log.h"
#include "base/strings.h"
#include "base/table.h"
#include "config/registry.h"
#include "nn/call.h"
#include "nn/model.h"
#include "perf/transfers.h"
#include "training/profiles.h"

namespace cytra::training {
namespace {

/// The names of the layers that the model runs, from outside to inside.
class LayerNames final : public nn::Watcher {
 public:
  explicit LayerNames(nn::Model& model) : before_(std::exchange(nn::watcher, this)) {
    for (const auto& module : model.named_modules()) names_[module.value().get()] = module.key();
  }
  ~LayerNames() override { nn::watcher = before_; }
  LayerNames& operator=(LayerNames&&) = delete;

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

std::string text_of(const perf::TransferPlace& place) {
  return fmt::format("{}{}{}",
                     place.operation,
                     place.layer.empty() ? "" : " of layer " + place.layer,
                     place.code.empty() ? "" : ", called by " + place.code);
}

/// `layer` returns the layer that is running; `forbid`: as the callback's.
class TransferProfile final : public Profile {
 public:
  TransferProfile(Settings settings,
                  c10::Device device,
                  std::function<std::string()> layer,
                  std::string forbid)
      : Profile(std::move(settings)),
        forbid_(std::move(forbid)),
        is_cpu_(device.is_cpu()),
        watch_(std::in_place, device, std::move(layer)) {
    watch_->begin_step(number() + 1);
  }
  void finish() override {
    const perf::Transfers transfers = watch_->found();
    watch_.reset();
    if (forbids() && steps_ < 2)
      log::warn("{}: nothing was checked: the first step is left out, and there was no other",
                settings_.name);
    if (!settings_.folder.empty()) write(transfers);
  }

 private:
  bool forbids() const { return forbid_ != "none"; }
  void step_ended() override {
    watch_->begin_step(number() + 1);
    if (!forbids() || steps_ == 1) return;  // what happens once is no matter
    for (const auto& [where, count] : watch_->found()) {
      const bool is_new = count.last_step == number() && told_.insert(where).second;
      if (is_new && is_forbidden(where)) warn(where);
    }
  }
  /// Whether the transfer happens in every step and makes the host wait. A CPU's optimizer and
  /// loader may read values: nothing waits there.
  bool is_forbidden(const perf::TransferPlace& where) const {
    if (!where.waits) return false;
    const std::string& phase = where.phase;
    if (phase == "optimizer" || phase == "data") return !is_cpu_;
    return phase == "forward" || phase == "backward" ||
           (phase.starts_with("callbacks.") &&
            (phase.ends_with(".on_batch_start") || phase.ends_with(".on_before_step") ||
             phase.ends_with(".on_step_end")));
  }

  void warn(const perf::TransferPlace& where) const {
    const std::string what = fmt::format(
        "step {} makes the host wait for the device ({} in {}): {}; it is forbidden by "
        "performance.forbid_transfers={}",
        number(),
        name_of(where.kind),
        where.phase,
        text_of(where),
        forbid_);
    if (forbid_ == "error") throw ConfigError(what);
    log::warn("{}", what);
  }

  void write(const perf::Transfers& transfers) const {
    using Found = std::pair<perf::TransferPlace, perf::TransferCount>;
    std::vector<Found> rows(transfers.begin(), transfers.end());
    std::ranges::stable_sort(rows, [](const Found& a, const Found& b) {
      return std::make_pair(a.first.waits, a.second.bytes) >
             std::make_pair(b.first.waits, b.second.bytes);
    });
    std::vector<std::vector<std::string>> lines{
        {"Phase: operation", "Kind", "Waits", "Calls", "Bytes", "First " + settings_.unit}};
    const double units = static_cast<double>(std::max<int64_t>(steps_, 1));
    for (const auto& [where, found] : rows) {
      lines.push_back({fmt::format("{}: {}", where.phase, text_of(where)),
                       name_of(where.kind),
                       where.waits ? "yes" : "",
                       fmt::format("{:.4g}", static_cast<double>(found.calls) / units),
                       format_bytes(static_cast<double>(found.bytes) / units),
                       std::to_string(found.first_step)});
    }
    const std::string path = write_table(
        fmt::format(
            "Calls and bytes are those of a {}, the mean of {}.\n", settings_.unit, steps_) +
        format_table(lines));
    constexpr std::size_t kMostLines = 20;
    if (lines.size() > kMostLines) lines.resize(kMostLines);
    log::info("transfers of a {}, the mean of {} ({}):\n{}",
              settings_.unit,
              steps_,
              path,
              format_table(lines));
  }

  const std::string forbid_;
  const bool is_cpu_;
  std::set<perf::TransferPlace> told_;
  std::optional<perf::TransferWatch> watch_;
};

class TransferProfiler final : public ProfilingCallback {
 public:
  struct Options {
    std::string dirpath, forbid = "none";
    void visit(auto& v) {
      v("dirpath", dirpath, "folder of the table; \"\": none");
      v("forbid",
        forbid,
        "a step that makes the host wait for the device is reported, or ends the run",
        {"none", "warn", "error"});
    }
  };
  explicit TransferProfiler(const Options& options) : options_(options) {}

 private:
  std::unique_ptr<Profile> begin(Context& context) override {
    nn::Model& model = context.task.model();
    return std::make_unique<TransferProfile>(
        settings(context, options_.dirpath),
        model.parameters().front().device(),
        [layers = std::make_shared<LayerNames>(model)] { return layers->newest(); },
        options_.forbid);
  }
  const Options options_;
};
CYTRA_REGISTER(Callback, TransferProfiler, "TransferProfiler");

}  // namespace

std::unique_ptr<Profile> transfer_profile(Profile::Settings settings, c10::Device device) {
  return std::make_unique<TransferProfile>(
      std::move(settings), device, [] { return std::string(); }, "none");
}

}  // namespace cytra::training
