// SegmentationHead, and the task of it: a mask, classes or several masks of an image
// (class_labels.h).
#include <atomic>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/log.h"
#include "data/loader/batch.h"
#include "data/sample/sample.h"
#include "report/findings.h"
#include "tasks/annotation_targets.h"
#include "tasks/class_labels.h"
#include "tasks/image_task.h"
#include "training/readback.h"

namespace cytra::tasks {
namespace {

using config::Node;
using Input = metrics::Metric::Input;

class SegmentationHead final : public Head {
 public:
  struct Options : HeadOptions {
    static constexpr const char* kPurpose = kClasses;
    std::optional<int64_t> num_classes, ignore_index;
    bool multilabel = false;
    std::vector<int64_t> target_values;
    std::optional<double> target_threshold;
    std::vector<std::string> colours;
    std::vector<std::string> class_names;
    ClassLabels labels;  // of the options above
    void visit(auto& v) {
      HeadOptions::visit(v);
      v("num_classes",
        num_classes,
        "1: a mask; K: classes 0 (background) to K - 1; null: the model's out_channels",
        1,
        65536);
      v("multilabel", multilabel, "the classes are masks that may overlap, a channel each");
      v("ignore_index",
        ignore_index,
        "the target's value where nothing is known: not learned, not scored; null: none");
      v("target_values",
        target_values,
        "the target's values that mean class 0, 1, ...; of a mask: no, yes; []: 0, 1, ...");
      v("target_threshold",
        target_threshold,
        "for masks: values above this are foreground, as in grey images or JPEG; null: all values "
        "but 0");
      v("colours",
        colours,
        "for targets in RGB: the colours that mean class 0 (background), 1, ...: ['#000000', "
        "'#ff0000']; []: class numbers");
      v("class_names",
        class_names,
        "names of the classes from 1 on (for masks: of all), for metrics and results; []: those of "
        "the annotations, or numbers");
    }
    void check(const Node& model = Node::make_map()) {
      Node task = Node::make_map();
      if (num_classes) task.set("num_classes", Node::make_integer(*num_classes));
      task.set("multilabel", Node::make_boolean(multilabel));
      task.set("model", model);
      labels = class_labels_of(task);
      labels.ignore_index = ignore_index;
      if (mask_key && !ignore_index) labels.ignore_index = ClassLabels::kIgnored;
      labels.target_values = target_values;
      labels.target_threshold = target_threshold;
      labels.colours = colours;
      labels.check();
      const int64_t named = labels.num_classes - first_class(labels);
      if (!class_names.empty() && std::ssize(class_names) != named) {
        throw ConfigError("class_names: {} names, expected {}: num_classes={} ({}{})",
                          class_names.size(),
                          named,
                          labels.num_classes,
                          labels.text(),
                          named < labels.num_classes ? "; class 0, the background, has none" : "");
      }
      fit();
    }

   private:
    /// Sets the parts of loss, metrics and decoder that follow from the labels.
    void fit() {
      expect_loss_of(loss, nn::kMasks);
      const bool exclusive = labels.are_exclusive();
      const std::string meaning =
          fmt::format("num_classes={} means {}", labels.num_classes, labels.text());
      fit_options(loss,
                  nn::Loss::kKind,
                  {{"sigmoid", Node::make_boolean(!exclusive)},
                   {"softmax", Node::make_boolean(exclusive)},
                   {"to_onehot_y", Node::make_boolean(exclusive)},
                   {"multilabel", Node::make_boolean(labels.multilabel)}},
                  meaning);
      const Node* ignored = loss.find_direct("ignore_index");
      if (ignored != nullptr && !ignored->is_null()) {
        throw ConfigError(
            "{}: expected null, and task.ignore_index={} for the loss and the metrics",
            ignored->where(),
            config::to_json(*ignored));
      }
      if (labels.ignore_index) loss.set("ignore_index", Node::make_integer(ClassLabels::kIgnored));
      metrics = labels.metrics(metrics);
      if (decoder.is_null()) decoder = labels.decoder();
    }
  };
  explicit SegmentationHead(const Options& options)
      : Head(options,
             {Input::masks, Input::objects, Input::probabilities},
             options.labels.num_classes),
        labels_(options.labels),
        class_names_(options.class_names) {
    using Kind = data::TargetMeaning::Kind;
    if (labels_.are_exclusive() && labels_.num_classes > 2) count_confusions(labels_.num_classes);
    meaning_.kind = labels_.multilabel        ? Kind::masks
                    : labels_.are_exclusive() ? Kind::classes
                                              : Kind::mask;
    meaning_.key = options.y_key;
    meaning_.num_classes = labels_.num_classes;
    meaning_.target_values = labels_.target_values;
    meaning_.ignore_index = options.ignore_index;
    meaning_.threshold = labels_.target_threshold;
    meaning_.has_colours = !labels_.colours.empty();
  }

  void prepare(data::Sample& sample, const std::string& x_key) const override {
    at::Tensor labels = labels_.target_of(sample, y_key_, x_key);
    at::Tensor& target = sample.at(y_key_);
    const bool is_told_what =
        labels_.target_threshold || !labels_.target_values.empty() || !labels_.colours.empty();
    if (!labels_.are_exclusive() && !is_told_what && !labels.is_same(target))
      tell_of_instances(target, sample.id);
    if (mask_key_) {
      labels = labels.masked_fill(mask_of(sample, *mask_key_, x_key).eq(0),
                                  static_cast<double>(ClassLabels::kIgnored));
    }
    target = std::move(labels);
  }

  std::string text() const override {
    return fmt::format("{} {} {} {} {} {} {} {}",
                       y_key_,
                       labels_.num_classes,
                       labels_.multilabel,
                       labels_.ignore_index.value_or(ClassLabels::kIgnored),
                       fmt::join(labels_.target_values, ","),
                       labels_.target_threshold ? std::to_string(*labels_.target_threshold) : "",
                       fmt::join(labels_.colours, ","),
                       mask_key_.value_or(""));
  }

  std::optional<data::TargetMeaning> target_meaning() const override { return meaning_; }

  /// Finds labels that transforms of whole batches have turned into fractions, or that the
  /// precision can't hold.
  void check_batch(const data::Batch& batch) override {
    tell_of_fractions();
    coming_.reset();
    if (checked_ == kChecked || !labels_.are_exclusive()) return;
    ++checked_;
    const at::Tensor& target = batch.at(y_key_);
    const bool is_short =
        target.scalar_type() == at::kBFloat16 || target.scalar_type() == at::kHalf;
    if (is_short && labels_.num_classes > 257) {
      throw ConfigError("trainer.precision: {} classes need class numbers in float32",
                        labels_.num_classes);
    }
    coming_.emplace(std::vector<at::Tensor>{target.ne(target.round()).any()});
    if (target.is_cpu()) tell_of_fractions();
  }

  void update(const at::Tensor& output, const data::Batch& batch) override {
    const at::Tensor counts = labels_.count(batch.at(y_key_));
    counts_ = counts_.to(counts.device()) + counts;
    Head::update(output, batch);
  }

  training::Metrics compute() override {
    const std::string missing = labels_.what_is_missing(counts_);
    if (missing != told_) log::warn("{}", told_ = missing);
    counts_ = no_images();
    return Head::compute();
  }

  report::Findings findings() const override {
    report::Findings found = Head::findings();
    for (std::size_t k = 0; k < found.classes.size() && !class_names_.empty(); ++k)
      found.classes[k] = k == 0 ? "background" : class_names_[k - 1];
    return found;
  }

  std::vector<at::Tensor> sums() override {
    std::vector<at::Tensor> all = Head::sums();
    all.push_back(counts_);
    return all;
  }

  std::map<std::string, at::Tensor> preview(const at::Tensor& output,
                                            const data::Batch& batch) const override {
    const at::Tensor target = labels_.flattened(batch.at(y_key_).slice(0, 0, 1)).to(at::kFloat);
    if (!output.defined()) return {{"target", target[0]}};
    const at::Tensor prediction =
        labels_.num_classes == 1
            ? decoder_->decode(output, "probability")
            : labels_.flattened(decoder_->decode(output, "mask")).to(at::kFloat);
    return {{"target", target[0]}, {"prediction", prediction[0]}};
  }

 protected:
  training::Metrics values() const override {
    return with_class_names(Head::values(), class_names_, first_class(labels_));
  }
  at::Tensor target(const at::Tensor& output, const data::Batch& batch) const override {
    if (output.size(1) != labels_.num_classes) {
      throw ConfigError("task.model: {} channels, expected {} (num_classes={}: {})",
                        output.size(1),
                        labels_.num_classes,
                        labels_.num_classes,
                        labels_.text());
    }
    return batch.at(y_key_);
  }

  metrics::Compared compared(const at::Tensor& output,
                             const data::Batch& batch,
                             Input input) const override {
    const char* const form = input == Input::probabilities ? "probability" : "mask";
    return labels_.compared(decoder_->decode(output, form), batch.at(y_key_), input);
  }

 private:
  static constexpr int kChecked = 8;  // batches

  void tell_of_fractions() {
    if (!coming_ || coming_->wait()[0] == 0) return;
    throw DataError(
        "{}: class numbers with fractions after data.transforms.batch: set mode nearest for '{}', "
        "and CutMixd in place of MixUpd",
        y_key_,
        y_key_);
  }

  at::Tensor no_images() const {
    return at::zeros({labels_.num_classes + 2}, at::TensorOptions(at::kDouble));
  }

  /// Reports once that several numbers may be meant as classes, or as instances.
  void tell_of_instances(const at::Tensor& values, const std::string& id) const {
    if (is_told_) return;
    const at::Tensor largest = values.max();
    if (largest.item<double>() <= 1 || values.eq(largest).eq(values.ne(0)).all().item<bool>())
      return;
    if (is_told_.exchange(true)) return;
    log::info(
        "{}: '{}' has labels up to {}: all that is not 0 is taken as one mask; for objects that "
        "are told apart: experiment=im2im/instance; for classes: num_classes",
        id,
        y_key_,
        largest.item<double>());
  }

  ClassLabels labels_;
  std::vector<std::string> class_names_;
  data::TargetMeaning meaning_;
  mutable std::atomic<bool> is_told_{false};
  int checked_ = 0;
  std::optional<training::Readback> coming_;  // whether the newest checked batch has fractions
  at::Tensor counts_ = no_images();
  std::string told_;  // of targets without foreground
};

CYTRA_REGISTER(Head, SegmentationHead, "SegmentationHead");
CYTRA_REGISTER(training::Task, OneHead<SegmentationHead>, "SegmentationTask");

}  // namespace
}  // namespace cytra::tasks
