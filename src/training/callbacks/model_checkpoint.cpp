// ModelCheckpoint: the best by a metric, and always the last. Source:
// lightning.pytorch.callbacks.ModelCheckpoint.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/own_files.h"
#include "base/stopwatch.h"
#include "base/strings.h"
#include "config/registry.h"
#include "training/callback.h"
#include "training/trainer_options.h"

namespace cytra::training {
namespace {
using config::Node;
using config::Unused;

/// "{epoch:03d}-{val/dice:.4f}" with the numbers of `state`; `missing`: a name that is none.
/// Throws: ConfigError.
std::string fill_in(const std::string& pattern,
                    const TrainState& state,
                    std::string* missing = nullptr) {
  std::string name;
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    const std::size_t end = pattern[at] == '{' ? pattern.find('}', at) : std::string::npos;
    if (end == std::string::npos) {
      name += pattern[at];
      continue;
    }
    const std::string field = pattern.substr(at + 1, end - at - 1);
    const std::size_t colon = field.find(':');
    const std::string key = field.substr(0, colon);
    const std::string form =
        colon == std::string::npos ? "{}" : "{:" + field.substr(colon + 1) + "}";
    const auto metric = state.metrics.find(key);
    static const std::vector<std::string> kOthers{
        "epoch", "step", "lr", "grad_norm", "skipped_steps"};
    if (key.find('/') == std::string::npos && !contains(kOthers, key))
      throw ConfigError(
          "filename: {{{}}} is no metric such as {{val/loss}}.{}", key, suggestion(key, kOthers));
    try {
      if (key == "epoch" || key == "step") {
        name += fmt::format(fmt::runtime(form), key == "epoch" ? state.epoch : state.step);
      } else {
        if (metric == state.metrics.end() && missing != nullptr) *missing = key;
        name += fmt::format(fmt::runtime(form),
                            metric == state.metrics.end() ? std::nan("") : metric->second);
      }
    } catch (const fmt::format_error& error) {
      throw ConfigError("filename: {}: {{{}}}: {}", pattern, field, error.what());
    }
    at = end;
  }
  return name;
}

class ModelCheckpoint final : public Callback {
  using ScoredCheckpoint = std::pair<double, std::string>;  // score and path

 public:
  struct Options {
    std::string dirpath, filename = "epoch_{epoch:03d}", mode = "min", on_save_error = "stop";
    std::optional<std::string> monitor = "val/loss";
    int64_t save_top_k = 1, every_n_epochs = 1;
    std::optional<int64_t> every_n_train_steps;
    bool save_last = true, save_on_exception = true;
    double interval_s = 0;  // of train_time_interval
    Node train_time_interval;
    void visit(auto& v) {
      v("dirpath", dirpath, "folder of the checkpoints");
      v("filename",
        filename,
        "without extension; {epoch:03d}, {step}, {val/dice:.3f} are filled in");
      v("monitor", monitor, "metric that decides which is best; null: the newest is");
      v("mode", mode, "min: lower is better", {"min", "max"});
      v("save_top_k", save_top_k, "how many of the best to keep; -1: all, 0: none", -1, 1e6);
      v("save_last",
        save_last,
        "keep last.ckpt, the newest state; every_n_train_steps and train_time_interval always do");
      v("every_n_epochs", every_n_epochs, "epochs between two checkpoints", 1, 1e9);
      v("every_n_train_steps",
        every_n_train_steps,
        "also every this many steps; 0: never",
        0,
        1e12);
      v("train_time_interval", train_time_interval, "also after this time: DD:HH:MM:SS");
      v("save_on_exception", save_on_exception, "write last.ckpt when an error ends the run");
      v("on_save_error",
        on_save_error,
        "a checkpoint that can't be written: stop: ends the run; warn: is a warning, and the "
        "training waits for each save",
        {"stop", "warn"});
      v("save_on_train_epoch_end", Unused{{"false"}}, "after a validation, else after an epoch");
      v("save_weights_only", Unused{{"false"}}, "a checkpoint holds everything; see `export`");
      v("auto_insert_metric_name", Unused{{"false"}}, "name the metric in filename");
      v("enable_version_counter", Unused{{"true"}}, "a name that is taken gets -v1, -v2 ...");
      v("verbose", Unused{}, "of Lightning");
    }
    void check() {
      if (!train_time_interval.is_null()) interval_s = duration_s(train_time_interval);
      fill_in(filename, {});
    }
  };
  explicit ModelCheckpoint(const Options& options) : options_(options) {}

  bool takes_part(const TrainerOptions& trainer, bool) const override {
    return trainer.enable_checkpointing && trainer.fast_dev_run == 0;
  }
  void on_fit_start(Context& context) override {
    if (std::exchange(is_other_, false))
      log::warn("callbacks.{}: the best so far is by another metric and does not count", name);
    leave_out_missing();
    if (context.best_of == nullptr && options_.save_top_k != 0) context.best_of = this;
    tell_best(context);
    if (options_.monitor && options_.save_top_k != 0 && !context.has_validation) {
      log::warn(
          "callbacks.{}: without validation there is no '{}', so {}; monitor=null keeps the newest",
          name,
          *options_.monitor,
          options_.save_last ? "last.ckpt alone is kept" : "no best checkpoint is kept");
    }
    make_folders(options_.dirpath);
    remove_stale_temporaries(options_.dirpath);
    last_path_ = free_path("last");
    best_path_ = free_path("best");
    // What this run goes on with may be its best, too.
    if (tells_best(context) && file_exists(context.state.best_path))
      link_file(context.state.best_path, best_path_);
    since_save_ = {};
    saved_step_ = context.state.step;
  }
  void on_step_end(Context& context) override {
    const int64_t steps = options_.every_n_train_steps.value_or(0);
    const bool is_step = steps > 0 && context.state.step % steps == 0;
    if (!is_step && (options_.interval_s <= 0 || since_save_.seconds() < options_.interval_s))
      return;
    if (is_step && !options_.monitor) keep_newest(context);
    save_last(context);
  }
  void on_validation_end(Context& context) override {
    if (context.state.epoch % options_.every_n_epochs != 0) return;
    if (options_.monitor && options_.save_top_k != 0) rank(context);
    if (!options_.monitor) keep_newest(context);
    if (options_.save_last) save_last(context);
  }
  void on_epoch_end(Context& context) override {  // of a training without validation
    if (saved_step_ == context.state.step || context.state.epoch % options_.every_n_epochs != 0)
      return;
    if (!options_.monitor) keep_newest(context);
    if (options_.save_last) save_last(context);
  }
  void on_fit_end(Context& context) override {
    if (options_.save_last && (saved_step_ != context.state.step || !has_last_)) save_last(context);
    if (context.best_of == this && kept_.empty())
      save(context, best_path_, kept_);  // none is better
  }
  void on_exception(Context& context, const std::string& /*what*/) override {
    const bool has_begun = saved_step_ >= 0;  // else there is no folder yet
    if (options_.save_on_exception && has_begun && saved_step_ != context.state.step)
      save_last(context);
  }

  Node state() const override {
    Node state = Node::make_map();
    Node& kept = state.set("kept", Node::make_map());
    // Without a limit (save_top_k < 0), new scores are compared with the best one only.
    const std::size_t count =
        options_.save_top_k < 0 ? std::min<std::size_t>(1, kept_.size()) : kept_.size();
    for (std::size_t k = 0; k < count; ++k)
      kept.map.emplace_back(kept_[k].second, Node::make_real(kept_[k].first));
    state.set("watched", Node::make_string(watched()));
    Node& losses = state.set("losses", Node::make_map());
    for (std::size_t k = 0; k < count; ++k) {
      if (const double loss = loss_of(kept_[k]); std::isfinite(loss))
        losses.map.emplace_back(kept_[k].second, Node::make_real(loss));
    }
    return state;
  }
  void load(const Node& state) override {
    kept_.clear();
    is_other_ = state.get<std::string>("watched", watched()) != watched();
    if (is_other_) return;
    for (const auto& [path, score] : state.at("kept").map) {
      kept_.emplace_back(score.as<double>(), path);
      own_file(path);
    }
    if (const Node* losses = state.find_direct("losses"))
      for (const auto& [path, loss] : losses->map) losses_[path] = loss.as<double>();
    if (options_.save_top_k >= 0 && std::ssize(kept_) > options_.save_top_k)
      kept_.resize(static_cast<std::size_t>(options_.save_top_k));
  }

 private:
  /// Forgets checkpoints that are gone, as where the run that is continued was moved.
  void leave_out_missing() {
    const auto gone = std::stable_partition(
        kept_.begin(), kept_.end(), [&](const auto& one) { return file_exists(one.second); });
    if (gone == kept_.end()) return;
    log::warn("callbacks.{}: the best so far, {}, is no longer there and does not count",
              name,
              gone->second);
    kept_.erase(gone, kept_.end());
  }
  /// The val/loss of a checkpoint that is kept, which decides where scores are equal.
  double loss_of(const ScoredCheckpoint& one) const {
    const auto place = losses_.find(one.second);
    return place == losses_.end() || std::isnan(place->second) ? INFINITY : place->second;
  }
  void save_last(Context& context) {
    has_last_ = true;
    save(context, last_path_, kept_);
  }
  /// Saves the state that is kept of the training, also as best.ckpt where it is the best.
  void save_kept(Context& context,
                 const std::string& path,
                 const std::vector<ScoredCheckpoint>& before) {
    make_folders(std::filesystem::path(path).parent_path().string());  // of the file's name
    save(context, path, before);
    if (tells_best(context) && context.state.best_path == path) save(context, best_path_, before);
  }
  bool tells_best(const Context& context) const {
    return context.best_of == this && !kept_.empty() &&
           std::ranges::none_of(kept_, [this](const ScoredCheckpoint& one) {
             return one.second == best_path_;  // filename=best
           });
  }
  /// `before`: with on_save_error: warn, what is still on the disk when the save fails.
  void save(Context& context, const std::string& path, std::vector<ScoredCheckpoint> before) {
    context.save_to.push_back(path);
    since_save_ = {};
    saved_step_ = context.state.step;
    if (options_.on_save_error != "warn") return;
    context.undo_saves.push_back([this, &context, before = std::move(before)] {
      kept_ = before;
      tell_best(context);
    });
  }
  void tell_best(Context& context) const {
    if (context.best_of != this) return;
    TrainState& state = context.state;
    state.best_path = kept_.empty() ? "" : kept_.front().second;
    state.best_score = kept_.empty() || !options_.monitor ? 0 : kept_.front().first;
    state.best_metric = options_.monitor.value_or("");
    state.best_mode = options_.monitor ? options_.mode : "";
  }
  /// The path of a new checkpoint, with -v1, -v2 ... where a checkpoint that stays, or a file that
  /// is not of this run, has the name already, as in Lightning.
  std::string path_of(const TrainState& state) {
    std::string missing;
    const std::string stem = options_.dirpath + "/" + fill_in(options_.filename, state, &missing);
    if (!missing.empty() && !std::exchange(is_missing_told_, true)) {
      std::vector<std::string> names{"epoch", "step"};
      for (const auto& [metric, value] : state.metrics) names.push_back(metric);
      log::warn(
          "callbacks.{}.filename: there is no '{}'.{}", name, missing, suggestion(missing, names));
    }
    const bool is_full = options_.save_top_k > 0 && std::ssize(kept_) >= options_.save_top_k;
    const auto end = kept_.end() - (is_full ? 1 : 0);  // the last one goes: its name is free
    std::string path = stem + ".ckpt";
    const auto is_taken = [&](const ScoredCheckpoint& one) { return one.second == path; };
    for (int version = 1; std::any_of(kept_.begin(), end, is_taken) || !may_replace(path);
         ++version)
      path = fmt::format("{}-v{}.ckpt", stem, version);
    return path;
  }
  std::string free_path(const std::string& stem) const {
    std::string path = fmt::format("{}/{}.ckpt", options_.dirpath, stem);
    for (int version = 1; !may_replace(path); ++version)
      path = fmt::format("{}/{}-v{}.ckpt", options_.dirpath, stem, version);
    return path;
  }

  void keep_newest(Context& context) {
    if (options_.save_top_k == 0) return;
    const std::vector<ScoredCheckpoint> on_disk = kept_;
    const auto step = static_cast<double>(context.state.step);
    std::string before;  // of the same step: the validation that came after takes its place
    if (!kept_.empty() && kept_.front().first == step) {
      before = kept_.front().second;
      kept_.erase(kept_.begin());
    }
    const std::string path = path_of(context.state);
    if (before != path && is_own(before)) context.remove.push_back(before);
    kept_.insert(kept_.begin(), {step, path});
    tell_best(context);
    drop_beyond_k(context, path);
    save_kept(context, path, on_disk);
  }

  void rank(Context& context) {
    const std::vector<ScoredCheckpoint> on_disk = kept_;
    const TrainState& state = context.state;
    const auto metric = state.metrics.find(*options_.monitor);
    if (metric == state.metrics.end()) {
      throw ConfigError("callbacks.{}.monitor: no metric '{}'.{}",
                        name,
                        *options_.monitor,
                        suggestion(*options_.monitor, keys_of(state.metrics)));
    }
    const double score = metric->second;
    if (!std::isfinite(score)) return;
    const std::string path = path_of(state);
    kept_.insert(kept_.begin(), {score, path});  // the newest of equals
    const auto loss = state.metrics.find("val/loss");
    losses_[path] = loss == state.metrics.end() ? std::nan("") : loss->second;
    std::ranges::stable_sort(kept_, [this](const auto& a, const auto& b) {
      return a.first == b.first ? loss_of(a) < loss_of(b) : is_better(a.first, b.first);
    });
    tell_best(context);
    const auto dropped = drop_beyond_k(context, path);
    if (!dropped || *dropped != ScoredCheckpoint(score, path)) save_kept(context, path, on_disk);
  }
  /// The checkpoint that is no longer among the best. Its file is removed once the better one is
  /// on the disk; files of the run that this one continues stay.
  std::optional<ScoredCheckpoint> drop_beyond_k(Context& context, const std::string& newest) {
    if (options_.save_top_k < 0 || std::ssize(kept_) <= options_.save_top_k) return std::nullopt;
    ScoredCheckpoint worst = kept_.back();
    kept_.pop_back();
    if (worst.second != newest && is_own(worst.second)) context.remove.push_back(worst.second);
    return worst;
  }
  bool is_own(const std::string& path) const { return path.starts_with(options_.dirpath + "/"); }
  std::string watched() const {
    return options_.monitor ? options_.mode + " " + *options_.monitor : "";
  }
  bool is_better(double a, double b) const { return options_.mode == "min" ? a < b : a > b; }

  Options options_;
  std::vector<ScoredCheckpoint> kept_;    // best first
  std::map<std::string, double> losses_;  // val/loss, by path
  Stopwatch since_save_;
  int64_t saved_step_ = -1;  // until the training begins
  std::string last_path_, best_path_;
  bool has_last_ = false;  // of this run
  bool is_missing_told_ = false;
  bool is_other_ = false;  // what was loaded has scores of another metric
};
CYTRA_REGISTER(Callback, ModelCheckpoint, "ModelCheckpoint");

}  // namespace
}  // namespace cytra::training
