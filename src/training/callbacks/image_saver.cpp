// ImageSaver: what the model makes of some images, as pictures. Follows
// cyto_dl.callbacks.ImageSaver, which writes each image as a TIFF of its own.

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/strings.h"
#include "config/registry.h"
#include "data/loader/batch.h"
#include "nn/forward_state.h"
#include "nn/model.h"
#include "report/panel.h"
#include "training/callback.h"
#include "training/trainer_options.h"

namespace cytra::training {
namespace {

/// The k-th sample alone.
data::Batch row_of(const data::Batch& batch, std::size_t k) {
  data::Batch row;
  for (const auto& [key, rows] : batch.tensors)
    row.tensors[key] = rows.narrow(0, static_cast<int64_t>(k), 1);
  row.ids = {batch.ids[k]};
  return row;
}

class ImageSaver final : public Callback {
 public:
  struct Options {
    std::string save_dir;
    std::vector<std::string> stages{"val"};
    int64_t save_every_n_epochs = 1, num_images = 4;
    bool save_input = true, train_batches = true;
    void visit(auto& v) {
      v("save_dir", save_dir, "folder that holds the folders <stage>_images", config::required);
      v("save_every_n_epochs",
        save_every_n_epochs,
        "epochs between two savings; the first validation of a run and the last are always saved, "
        "and until then those after twice the steps of the saving before",
        1,
        1e9);
      v("stages",
        stages,
        "train: images of an epoch's first batch; val: of the validation; test and predict save "
        "nothing");
      v("num_images", num_images, "images of a validation: the first ones", 1, 1e6);
      v("save_input", save_input, "show the input too");
      v("train_batches",
        train_batches,
        "show the first num_images samples that are trained, with their targets, as the network "
        "sees them");
    }
    void check() const {
      const std::vector<std::string> known{"train", "val", "test", "predict"};
      for (const std::string& stage : stages) {
        if (!contains(known, stage))
          throw ConfigError("stages: expected train, val, test or predict, got '{}'.{}",
                            stage,
                            suggestion(stage, known));
      }
    }
  };
  explicit ImageSaver(const Options& options)
      : options_(options), of_train_(has("train")), of_val_(has("val")) {}

  bool takes_part(const TrainerOptions& trainer, bool is_first_process) const override {
    return trainer.fast_dev_run == 0 && is_first_process;
  }
  void on_fit_start(Context& context) override {
    saved_at_ = context.state.epoch;
    is_first_ = true;
    samples_ = options_.train_batches ? 0 : options_.num_images;
  }
  void on_batch_start(Context& context) override {
    const data::Batch& batch = *context.batch;
    for (std::size_t k = 0; k < batch.ids.size() && samples_ < options_.num_images; ++k) {
      const data::Batch sample = row_of(batch, k);
      save(context, "train_batches", sample, context.task.preview_input(sample), samples_++);
    }
    const TrainState& state = context.state;
    if (!of_train_ || state.batch != 0 || (state.epoch + 1) % options_.save_every_n_epochs != 0)
      return;
    nn::Model& model = context.task.model();
    const nn::KeepForwardState untouched(model);
    model.eval();
    const at::NoGradGuard no_grad;
    save(context, "train_images", batch, context.task.preview(batch), 0);
  }
  void on_validation_start(Context& context) override {
    const TrainState& state = context.state;
    const bool is_end =
        context.is_last || (context.total_steps >= 0 && state.step >= context.total_steps);
    const int64_t every = options_.save_every_n_epochs;
    const bool is_first = is_first_ && state.step > 0;  // the sanity check comes before
    const bool is_early = state.epoch < every && state.step >= 2 * saved_step_;
    is_due_ =
        of_val_ && (is_first || is_early || is_end || state.epoch / every > saved_at_ / every);
    is_first_ = is_first_ && !is_first;
    images_ = 0;
  }
  void on_validation_batch(Context& context) override {
    if (!is_due_ || images_ == options_.num_images) return;
    save(context, "val_images", *context.batch, context.task.preview(*context.batch), images_++);
    saved_at_ = context.state.epoch;
    saved_step_ = context.state.step;
  }

 private:
  bool has(const char* stage) const {
    const auto& stages = options_.stages;
    return contains(stages, stage);
  }
  /// Saves a picture; one that can't be written does not end the training.
  void save(Context& context,
            const std::string& folder,
            const data::Batch& batch,
            std::map<std::string, at::Tensor> preview,
            int64_t number) {
    const bool is_validation = folder == "val_images";
    const int64_t epoch = context.state.epoch + (is_validation ? 0 : 1);
    if (!options_.save_input) preview.erase("input");
    if (preview.empty()) return warn("this task shows no images");
    const io::Image panel = report::draw_panel(preview);
    const std::string label = fmt::format("{}/{}", folder, number);
    const std::vector<std::string>& ids = batch.ids;
    const std::string word = context.task.caption(batch, folder != "train_batches");
    const std::string caption = fmt::format("{}{}{}, epoch {}",
                                            ids.empty() ? "" : ids.front() + ": ",
                                            fmt::join(report::panel_parts(preview), " | "),
                                            word.empty() ? "" : ", " + word,
                                            epoch);
    for (const auto& logger : context.loggers) {
      logger->log_caption(label, caption);
      logger->log_image(label, panel, context.state.step);
    }
    try {
      make_folders(options_.save_dir + "/" + folder);
      io::write_png(fmt::format("{}/{}/{:03d}_{}.png", options_.save_dir, folder, epoch, number),
                    panel);
    } catch (const Error& error) {
      warn(error.what());
    }
  }
  void warn(const std::string& what) {
    if (!std::exchange(is_warned_, true)) log::warn("callbacks.{}: {}", name, what);
  }
  Options options_;
  bool of_train_, of_val_, is_due_ = false, is_first_ = true, is_warned_ = false;
  int64_t saved_at_ = 0, saved_step_ = 0;  // the newest saved validation's epoch and step
  int64_t images_ = 0, samples_ = 0;       // shown in this validation, and of batches
};
CYTRA_REGISTER(Callback, ImageSaver, "ImageSaver");

}  // namespace
}  // namespace cytra::training
