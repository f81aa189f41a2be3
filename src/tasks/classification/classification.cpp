// ClassificationHead, and the task of it: the class of a whole image, which a table's column or the
// image's folder tells.
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "data/batch.h"
#include "data/sample.h"
#include "nn/classifier.h"
#include "tasks/annotation_targets.h"
#include "tasks/classification/labels.h"
#include "tasks/image_task.h"

namespace cytra::tasks {
namespace {

using config::Node;
using Input = metrics::Metric::Input;

/// A class number is a target of one voxel, as the model's output is: (N,1,[1,]1,1). It is not
/// registered, as MultiTask predicts whole images through windows.
class ClassificationHead final : public Head {
 public:
  struct Options : HeadOptions {
    std::optional<int64_t> num_classes;
    std::vector<std::string> class_names;
    ImageLabels labels;  // of the options above
    Options() { y_key = "label"; }
    template <class V>
    void visit(V& v) {
      HeadOptions::visit(v);
      v("num_classes", num_classes, "null: the model's out_channels", 2, 65536);
      v("class_names",
        class_names,
        "the words that mean class 0, 1, ...; []: images have the numbers");
    }
    void check(const Node& model = Node::make_map()) {
      if (!num_classes) num_classes = model.get<int64_t>("out_channels", 2);
      labels = {*num_classes, class_names};
      labels.check();
      if (mask_key) throw ConfigError("mask_key: whole images have a class, expected null");
      expect_loss_of(loss, Learned::masks);
      fit_options(loss,
                  nn::Loss::kKind,
                  {{"sigmoid", Node::make_boolean(false)},
                   {"softmax", Node::make_boolean(true)},
                   {"to_onehot_y", Node::make_boolean(true)},
                   {"multilabel", Node::make_boolean(false)}},
                  "an image has one class");
      if (metrics.is_null()) {
        metrics = config::parse_yaml("{accuracy: {_target_: MulticlassAccuracy, average: micro}}",
                                     "ClassificationHead");
      }
      if (decoder.is_null()) {
        decoder = config::parse_yaml(
            fmt::format("{{_target_: ClassDecoder, num_classes: {}}}", *num_classes),
            "ClassificationHead");
      }
    }
  };
  explicit ClassificationHead(const Options& options)
      : Head(options, {Input::masks}, options.labels.num_classes), labels_(options.labels) {}

  void fit(int64_t /*spatial_dims*/, int64_t channels) override {
    if (channels == labels_.num_classes) return;
    throw ConfigError(fmt::format(
        "task.model: {} channels, expected num_classes={}", channels, labels_.num_classes));
  }
  void prepare(data::Sample& sample, const std::string& x_key) const override {
    const std::vector<int64_t> one(sample.size(x_key).size() + 1, 1);
    sample.tensors[y_key_] =
        at::full(one, static_cast<double>(labels_.number_of(sample, y_key_)), at::kFloat);
  }
  std::string text() const override {
    return fmt::format(
        "{} {} {}", y_key_, labels_.num_classes, fmt::join(labels_.class_names, ","));
  }
  training::Metrics compute() override {
    return with_class_names(Head::compute(), labels_.class_names, 0);
  }
  std::map<std::string, at::Tensor> preview(const at::Tensor& /*output*/,
                                            const data::Batch& /*batch*/) const override {
    return {};  // a class is no image
  }

 protected:
  at::Tensor target(const at::Tensor& /*output*/, const data::Batch& batch) const override {
    return batch.at(y_key_);
  }
  metrics::Compared compared(const at::Tensor& output,
                             const data::Batch& batch,
                             Input /*input*/) const override {
    return labels_.compared(decoder_->decode(output, "mask"), batch.at(y_key_));
  }

 private:
  ImageLabels labels_;
};

/// Images are validated whole: there is no mean of classes over windows.
class ClassificationTask final : public ImageTask {
 public:
  struct Options : ClassificationHead::Options {
    std::string x_key = "raw";
    Node model;
    template <class V>
    void visit(V& v) {
      v("x_key", x_key, "the image's key in a sample");
      v("model", model, "the network: ImageClassifier", config::component<nn::Model>());
      ClassificationHead::Options::visit(v);
    }
    void check() { ClassificationHead::Options::check(model); }
  };
  explicit ClassificationTask(const Options& options)
      : ClassificationTask(options, std::make_shared<ClassificationHead>(options)) {}

  bool is_scored() const override { return true; }
  void validation_step(const data::Batch& batch) override {
    head_->update(model()(batch.at(x_key())), batch);
  }
  std::map<std::string, at::Tensor> preview(const data::Batch& batch) override {
    return {{"input", batch.at(x_key())[0]}};
  }

 private:
  ClassificationTask(const Options& options, std::shared_ptr<ClassificationHead> head)
      : ImageTask({options.x_key, options.model, {}}, {{"", head}}), head_(std::move(head)) {
    if (dynamic_cast<const nn::Classifier*>(&model()) == nullptr)
      throw ConfigError(
          "task.model: no network that tells classes of images; expected "
          "model=image_classifier");
  }
  std::shared_ptr<ClassificationHead> head_;
};
CYTRA_REGISTER(training::Task, ClassificationTask, "ClassificationTask");

}  // namespace
}  // namespace cytra::tasks
