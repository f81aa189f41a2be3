// OutlierDetection: which training images look unlike the others to the model, by the Mahalanobis
// distance of the channel means of a layer's output. Follows cyto_dl.callbacks.OutlierDetection,
// which learns mean and covariance of the training in its last epochs too, but measures test and
// prediction images patch by patch.
#include <algorithm>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "config/registry.h"
#include "data/loader/batch.h"
#include "nn/call.h"
#include "nn/model.h"
#include "training/callback.h"

namespace cytra::training {
namespace {

/// Remembers the first output of some modules.
class Tap final : public nn::Watcher {
 public:
  std::map<const torch::nn::Module*, std::string> wanted;
  std::map<std::string, at::Tensor> outputs;  // by layer, (N,C)

  void begin(const torch::nn::Module& module, const at::Tensor&) override {
    running_.push_back(&module);
  }
  void end(const at::Tensor& output) override {
    const auto layer = wanted.find(running_.back());
    running_.pop_back();
    // Gradient checkpointing runs a block again, in the backward pass: this is left out.
    if (layer == wanted.end() || output.dim() < 2 || outputs.count(layer->second) != 0) return;
    const at::Tensor values = output.detach().to(at::kFloat);
    outputs[layer->second] = values.dim() == 2 ? values : values.flatten(2).mean(2);
  }

 private:
  std::vector<const torch::nn::Module*> running_;
};

class OutlierDetection final : public Callback {
 public:
  struct Options {
    std::vector<std::string> layer_names;
    int64_t n_epochs = 1;
    std::string save_dir = ".";
    void visit(auto& v) {
      v("layer_names", layer_names, "modules of the model, by dotted name", config::required);
      v("n_epochs", n_epochs, "this many epochs at the end count", 1, 1e9);
      v("save_dir", save_dir, "folder that gets outliers.csv when the training ends");
      v("x_key", config::Unused{}, "the task knows its image");
    }
  };
  explicit OutlierDetection(const Options& options) : options_(options) {}
  ~OutlierDetection() override { stop(); }

  bool takes_part(const TrainerOptions&, bool is_first_process) const override {
    return is_first_process;
  }
  void attach(Task& task) override {
    std::vector<std::string> names;
    for (const auto& item : task.model().named_modules("", /*include_self=*/false)) {
      names.push_back(item.key());
      const auto& wanted = options_.layer_names;
      if (std::ranges::find(wanted, item.key()) != wanted.end())
        tap_.wanted[item.value().get()] = item.key();
    }
    for (const std::string& layer : options_.layer_names) {
      if (std::ranges::find(names, layer) == names.end())
        throw ConfigError(
            "OutlierDetection.layer_names: no module '{}'.{}", layer, suggestion(layer, names));
    }
  }
  void on_fit_start(Context& context) override {
    make_folders(options_.save_dir);
    if (context.total_epochs < 0)
      log::warn("callbacks.{}: the last epochs are not known; set trainer.max_epochs", name);
  }
  void on_batch_start(Context& context) override {
    collect();
    if (context.total_epochs < 0 || context.state.epoch < context.total_epochs - options_.n_epochs)
      return;
    ids_ = context.batch->ids;
    nn::watcher = &tap_;
  }
  void on_before_step(Context&) override { collect(); }
  void on_exception(Context&, const std::string& /*what*/) override { stop(); }
  void on_fit_end(Context&) override {
    collect();
    std::vector<std::pair<double, std::string>> rows;  // of the largest distance first
    for (const std::string& layer : options_.layer_names) measure(layer, rows);
    if (rows.empty()) return;
    std::ranges::sort(rows, std::greater<>());
    std::string text = "id,layer,images,mean_distance,max_distance\n";
    for (const auto& [distance, row] : rows) text += row;
    write_file(options_.save_dir + "/outliers.csv", text);
    log::info("the images farthest from the others: {}/outliers.csv", options_.save_dir);
  }

 private:
  void stop() {
    if (nn::watcher == &tap_) nn::watcher = nullptr;
  }
  /// What the batch before left.
  void collect() {
    stop();
    for (const auto& [layer, means] : std::exchange(tap_.outputs, {})) {
      if (means.size(0) != std::ssize(ids_)) continue;  // not one row per image
      means_[layer].push_back(means);
      for (const std::string& id : ids_) seen_[layer].push_back(id);
    }
  }
  void measure(const std::string& layer, std::vector<std::pair<double, std::string>>& rows) {
    const std::vector<std::string>& ids = seen_[layer];
    if (ids.size() < 3) {
      log::warn("callbacks.{}: '{}' gave {} outputs with a row per image, at least 3 are needed",
                name,
                layer,
                ids.size());
      return;
    }
    const at::Tensor means = at::cat(means_[layer]).to(at::kCPU, at::kDouble);
    const at::Tensor off = means - means.mean(0, true);
    const at::Tensor covariance = at::mm(off.t(), off) / static_cast<double>(ids.size() - 1);
    const at::Tensor distances =
        (at::mm(off, at::linalg_pinv(covariance, 1e-12, /*hermitian=*/true)) * off).sum(1).sqrt();
    struct Row {
      int64_t count = 0;
      double sum = 0, max = 0;
    };
    std::map<std::string, Row> of_image;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const double distance = distances.const_data_ptr<double>()[i];
      Row& row = of_image[ids[i]];
      row.count += 1;
      row.sum += distance;
      row.max = std::max(row.max, distance);
    }
    for (const auto& [id, row] : of_image) {
      const double mean = row.sum / static_cast<double>(row.count);
      rows.emplace_back(
          mean, fmt::format("\"{}\",{},{},{:.6g},{:.6g}\n", id, layer, row.count, mean, row.max));
    }
  }
  Options options_;
  Tap tap_;
  std::vector<std::string> ids_;
  std::map<std::string, std::vector<at::Tensor>> means_;
  std::map<std::string, std::vector<std::string>> seen_;  // the image of each row
};
CYTRA_REGISTER(Callback, OutlierDetection, "OutlierDetection");

}  // namespace
}  // namespace cytra::training
