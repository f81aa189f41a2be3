// SegmentationTask: a mask, classes or several masks of an image (class_labels.h).
#include <algorithm>
#include <atomic>
#include <cmath>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/log.h"
#include "config/registry.h"
#include "data/batch.h"
#include "data/sample.h"
#include "inference/sliding_window.h"
#include "metrics/dice.h"
#include "nn/loss.h"
#include "nn/model.h"
#include "tasks/class_labels.h"
#include "training/task.h"

namespace cytra::tasks {
namespace {

using config::Node;

/// Every sample's last step: its target becomes labels. All that is wrong with it is found here, in
/// a loader's thread, where the file is known and no GPU has seen it.
class Labelled final : public data::Transform {
 public:
  Labelled(const std::string& x_key,
           const std::string& y_key,
           int64_t in_channels,
           const ClassLabels& labels)
      : x_key_(x_key), y_key_(y_key), in_channels_(in_channels), labels_(labels) {
    name = "SegmentationTask";
    text = fmt::format("{} {} {} {} {} {}",
                       name,
                       x_key,
                       y_key,
                       in_channels,
                       labels.num_classes,
                       labels.multilabel);
  }
  void apply(data::Sample& sample, Rng& /*rng*/) const override {
    const int64_t channels = sample.at(x_key_).size(0);
    if (channels != in_channels_) {
      throw DataError(fmt::format("{}: {} channels, the model expects {} (set raw_im_channels)",
                                  sample.id,
                                  channels,
                                  in_channels_));
    }
    at::Tensor labels = labels_.target_of(sample, y_key_, x_key_);
    at::Tensor& target = sample.at(y_key_);
    if (!labels_.are_exclusive() && !labels.is_same(target)) tell_of_instances(target, sample.id);
    target = std::move(labels);
  }

 private:
  /// Once: several numbers may be meant as classes.
  void tell_of_instances(const at::Tensor& values, const std::string& id) const {
    if (is_told_) return;
    const at::Tensor largest = values.max();
    if (largest.item<double>() <= 1 || values.eq(largest).eq(values.ne(0)).all().item<bool>())
      return;
    if (is_told_.exchange(true)) return;
    log::info(
        "{}: '{}' has labels up to {}: all that is not 0 is taken as one mask; for classes set "
        "num_classes",
        id,
        y_key_,
        largest.item<double>());
  }
  std::string x_key_, y_key_;
  int64_t in_channels_;
  ClassLabels labels_;
  mutable std::atomic<bool> is_told_{false};
};

Node make_boolean(bool value) {
  Node node;
  node.kind = config::Kind::boolean;
  node.boolean = value;
  return node;
}

/// Sets what of the loss follows from the labels, where it is open (null). Throws: ConfigError for
/// values that do not fit.
void fit_loss(Node& loss, const ClassLabels& labels) {
  const config::Components& losses = config::components_of(nn::Loss::kKind);
  const bool exclusive = labels.are_exclusive();
  const std::map<std::string, bool> fitting{{"sigmoid", !exclusive},
                                            {"softmax", exclusive},
                                            {"to_onehot_y", exclusive},
                                            {"multilabel", labels.multilabel}};
  std::string type;
  try {
    type = losses.name_of(loss);
  } catch (const ConfigError&) {
    return;  // told where the loss itself is checked
  }
  for (const config::OptionInfo& option : losses.types.at(type).describe()) {
    const auto value = fitting.find(option.name);
    if (value == fitting.end()) continue;
    const Node* given = loss.find_direct(option.name);
    if (given == nullptr || given->is_null()) {
      loss.set(option.name, make_boolean(value->second));
    } else if (given->as<bool>() != value->second) {
      throw ConfigError(
          fmt::format("{}: {}={}, but num_classes={} means {}: expected {}, or null, which follows",
                      given->where(),
                      option.name,
                      given->boolean,
                      labels.num_classes,
                      labels.text(),
                      value->second));
    }
  }
}

class SegmentationTask final : public training::Task {
 public:
  struct Options {
    std::string x_key = "raw", y_key = "seg";
    std::optional<int64_t> num_classes;
    bool multilabel = false;
    Node model, loss;
    inference::SlidingWindowOptions inference_args;
    ClassLabels labels;  // of the options above
    template <class V>
    void visit(V& v) {
      v("x_key", x_key, "the image's key in a sample");
      v("y_key", y_key, "the target's key: a mask, class numbers, or a mask per channel");
      v("num_classes",
        num_classes,
        "1: a mask; K: classes 0 (background) to K - 1; null: the model's out_channels",
        1,
        65536);
      v("multilabel", multilabel, "the classes are masks that may overlap, a channel each");
      v("model", model, "the network", config::component<nn::Model>());
      v("loss", loss, "what is minimised", config::component<nn::Loss>());
      v("inference_args", inference_args, "sliding window of validation and prediction");
    }
    void check() {
      Node task = Node::make_map();
      if (num_classes) task.set("num_classes", Node::make_integer(*num_classes));
      task.set("multilabel", make_boolean(multilabel));
      task.set("model", model);
      labels = class_labels_of(task);
      fit_loss(loss, labels);
    }
  };
  explicit SegmentationTask(const Options& options)
      : options_(options),
        labels_(options.labels),
        decoder_(labels_.decoder()),
        model_(make<nn::Model>(options.model)),
        loss_(make<nn::Loss>(options.loss)),
        dice_(labels_.dice()) {}

  nn::Model& model() override { return *model_; }

  std::shared_ptr<data::Transform> sample_transform() override {
    if (!transform_) {
      transform_ = std::make_shared<Labelled>(
          options_.x_key, options_.y_key, model_->in_channels(), labels_);
    }
    return transform_;
  }

  Tensor training_step(const data::Batch& batch) override {
    const at::Tensor& target = batch.at(options_.y_key);
    if (checked_ < kChecked) check_batch(target);
    return (*loss_)(at_least_float(fitting((*model_)(batch.at(options_.x_key)))), target);
  }

  void validation_step(const data::Batch& batch) override {
    const at::Tensor logits = predict(batch.at(options_.x_key));
    const at::Tensor& target = batch.at(options_.y_key);
    const at::Tensor loss = (*loss_)(logits, target).to(at::kDouble);
    if (loss_sums_.device() != loss.device()) loss_sums_ = loss_sums_.to(loss.device());
    loss_sums_.add_(at::stack({loss, at::ones_like(loss)}));
    dice_.update(labels_.one_hot(decoder_->decode(logits, "mask")), labels_.one_hot(target));
  }

  training::Metrics validation_end() override {
    const at::Tensor sums = loss_sums_.cpu();
    const double* numbers = sums.const_data_ptr<double>();
    training::Metrics metrics = labels_.scores(dice_);
    metrics["loss"] = numbers[1] > 0 ? numbers[0] / numbers[1] : std::nan("");
    const std::string missing = labels_.what_is_missing(dice_);
    if (missing != told_) log::warn("{}", told_ = missing);
    loss_sums_ = no_loss();
    dice_.reset();
    return metrics;
  }

  std::vector<Tensor> sums() override { return {loss_sums_, dice_.sums()}; }

  std::map<std::string, Tensor> preview(const data::Batch& batch) override {
    const at::Tensor image = batch.at(options_.x_key).slice(0, 0, 1);
    const at::Tensor logits = predict(image);
    const at::Tensor target = batch.at(options_.y_key).slice(0, 0, 1);
    const at::Tensor prediction = labels_.num_classes == 1
                                      ? decoder_->decode(logits, "probability")
                                      : labels_.flattened(decoder_->decode(logits, "mask")).to(at::kFloat);
    return {{"input", image[0]},
            {"target", labels_.flattened(target)[0].to(at::kFloat)},
            {"prediction", prediction[0]}};
  }

 private:
  static constexpr int kChecked = 8;  // batches: a check waits for a GPU

  /// Labels that transforms of whole batches have made fractions of, or the precision can't hold.
  void check_batch(const at::Tensor& target) {
    ++checked_;
    if (!labels_.are_exclusive()) return;
    const bool is_short =
        target.scalar_type() == at::kBFloat16 || target.scalar_type() == at::kHalf;
    if (is_short && labels_.num_classes > 257) {
      throw ConfigError(fmt::format("trainer.precision: {} classes need class numbers in float32",
                                    labels_.num_classes));
    }
    if (target.eq(target.round()).all().item<bool>()) return;
    throw DataError(fmt::format(
        "{}: class numbers with fractions after data.transforms.batch: set mode nearest for '{}', "
        "and CutMixd in place of MixUpd",
        options_.y_key,
        options_.y_key));
  }
  at::Tensor predict(const at::Tensor& image) {
    const auto model = [this](const at::Tensor& windows) { return (*model_)(windows); };
    return fitting(inference::sliding_window(image, model, options_.inference_args));
  }
  at::Tensor fitting(at::Tensor logits) const {
    if (logits.size(1) == labels_.num_classes) return logits;
    throw ConfigError(fmt::format("task.model: {} channels, expected {} (num_classes={}: {})",
                                  logits.size(1),
                                  labels_.num_classes,
                                  labels_.num_classes,
                                  labels_.text()));
  }
  /// Losses are computed in float32 at least.
  static at::Tensor at_least_float(const at::Tensor& logits) {
    return logits.scalar_type() == at::kDouble ? logits : logits.to(at::kFloat);
  }
  static at::Tensor no_loss() { return at::zeros({2}, at::TensorOptions(at::kDouble)); }
  Options options_;
  ClassLabels labels_;
  std::shared_ptr<inference::Decoder> decoder_;
  std::shared_ptr<nn::Model> model_;
  std::shared_ptr<nn::Loss> loss_;
  std::shared_ptr<data::Transform> transform_;
  metrics::Dice dice_;
  at::Tensor loss_sums_ = no_loss();  // the sum over batches, and their number
  int checked_ = 0;
  std::string told_;  // of targets without foreground
};
CYTRA_REGISTER(training::Task, SegmentationTask, "SegmentationTask");

}  // namespace
}  // namespace cytra::tasks
