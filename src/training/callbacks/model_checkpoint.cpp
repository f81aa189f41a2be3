// ModelCheckpoint: the best by a metric, and always the last. Source:
// lightning.pytorch.callbacks.ModelCheckpoint.
#include <algorithm>
#include <cmath>
#include <filesystem>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "config/registry.h"
#include "training/callback.h"

namespace cytra::training {
namespace {
using config::Unused;

class ModelCheckpoint final : public Callback {
 public:
  struct Options {
    std::string dirpath, filename = "epoch_{epoch:03d}", monitor = "val/loss", mode = "min";
    int64_t save_top_k = 1;
    std::optional<int64_t> every_n_train_steps;
    bool save_last = true;
    template <class V>
    void visit(V& v) {
      v("dirpath", dirpath, "folder of the checkpoints");
      v("filename", filename, "name without extension; {epoch:03d} and {step} are filled in");
      v("monitor", monitor, "metric that decides which is best");
      v("mode", mode, "min: lower is better", {"min", "max"});
      v("save_top_k", save_top_k, "how many of the best to keep; -1: all, 0: none", -1, 1e6);
      v("save_last", save_last, "keep last.ckpt up to date at each validation");
      v("every_n_train_steps",
        every_n_train_steps,
        "also write last.ckpt every so many steps; 0 or null: no",
        0,
        1e12);
      v("every_n_epochs", Unused{{"1"}}, "the trainer's check_val_every_n_epoch decides when");
      v("train_time_interval", Unused{{"null"}}, "checkpoints are written at validations");
      v("save_on_train_epoch_end", Unused{{"false"}}, "checkpoints are written at validations");
      v("save_weights_only", Unused{{"false"}}, "a checkpoint holds everything");
      v("auto_insert_metric_name", Unused{{"false"}}, "name the metric in filename");
      v("verbose", Unused{}, "of Lightning");
    }
  };
  explicit ModelCheckpoint(const Options& options) : options_(options) {}

  void on_fit_start(const TrainState&) override {
    make_folders(options_.dirpath);
    remove_stale_temporaries(options_.dirpath);
  }
  void on_step_end(TrainState& state, Control& control) override {
    const int64_t interval = options_.every_n_train_steps.value_or(0);
    if (interval > 0 && state.step % interval == 0) save_last(control);
  }
  void on_validation_end(TrainState& state, Control& control) override {
    if (options_.save_top_k != 0) save_best(state, control);
    if (options_.save_last) save_last(control);
  }

 private:
  void save_last(Control& control) const {
    control.save_to.push_back(options_.dirpath + "/last.ckpt");
  }

  void save_best(TrainState& state, Control& control) {
    const auto metric = state.metrics.find(options_.monitor);
    if (metric == state.metrics.end()) {
      std::vector<std::string> names;
      for (const auto& [name, value] : state.metrics) names.push_back(name);
      throw ConfigError(fmt::format("callbacks.model_checkpoint.monitor: no metric '{}'.{}",
                                    options_.monitor,
                                    suggestion(options_.monitor, names)));
    }
    const double score = metric->second;
    if (std::isnan(score)) return;
    const std::string path = fmt::format("{}/{}.ckpt", options_.dirpath, file_name(state));
    if (state.best_path.empty() || is_better(score, state.best_score)) {
      state.best_score = score;
      state.best_path = path;
    }
    kept_.emplace_back(score, path);
    std::stable_sort(kept_.begin(), kept_.end(), [this](const auto& a, const auto& b) {
      return is_better(a.first, b.first);
    });
    if (options_.save_top_k > 0 && static_cast<int64_t>(kept_.size()) > options_.save_top_k) {
      const std::string worst = kept_.back().second;
      kept_.pop_back();
      if (worst == path) return;  // not among the best
      stale_.push_back(worst);
    }
    control.save_to.push_back(path);
  }
  // Removed only after the better one is on the disk: at the next hook.
  void on_epoch_end(TrainState&, Control&) override { remove_stale(); }
  void on_fit_end(const TrainState&) override { remove_stale(); }
  void remove_stale() {
    std::error_code ignored;
    for (const std::string& path : stale_) std::filesystem::remove(path, ignored);
    stale_.clear();
  }
  bool is_better(double a, double b) const { return options_.mode == "min" ? a < b : a > b; }

  std::string file_name(const TrainState& state) const {
    std::string name = options_.filename;
    const auto replace = [&](const std::string& mark, const std::string& text) {
      for (std::size_t at; (at = name.find(mark)) != std::string::npos;)
        name.replace(at, mark.size(), text);
    };
    replace("{epoch:03d}", fmt::format("{:03d}", state.epoch));
    replace("{epoch}", std::to_string(state.epoch));
    replace("{step}", std::to_string(state.step));
    return name;
  }
  Options options_;
  std::vector<std::pair<double, std::string>> kept_;
  std::vector<std::string> stale_;
};
CYTRA_REGISTER(Callback, ModelCheckpoint, "ModelCheckpoint");

}  // namespace
}  // namespace cytra::training
