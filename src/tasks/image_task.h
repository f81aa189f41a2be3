#pragma once
// The common part of tasks on images: windows, heads on the model's outputs, sums over processes.
// A task of one head is a Head, and OneHead of it:
//   CYTRA_REGISTER(Head, SegmentationHead, "SegmentationHead");
//   CYTRA_REGISTER(training::Task, OneHead<SegmentationHead>, "SegmentationTask");
#include <memory>
#include <string>
#include <vector>

#include "inference/windows/sliding_window.h"
#include "nn/model.h"
#include "tasks/head.h"
#include "tasks/suited.h"

namespace cytra::tasks {

struct ImageTaskOptions {
  std::string x_key = "raw";
  config::Node model;
  inference::SlidingWindowOptions inference_args;
  void visit(auto& v) {
    v("x_key", x_key, "the image's key in a sample");
    v("model", model, "the network", config::component<nn::Model>());
    v("inference_args", inference_args, "sliding window of validation and prediction");
  }
};

class ImageTask : public training::Task {
 public:
  struct WeightedHead {
    std::string name;  // of the model's output; "": the only one
    std::shared_ptr<Head> head;
    double weight = 1;
  };
  /// Throws: ConfigError for a name that the model has no output of.
  ImageTask(const ImageTaskOptions& options, std::vector<WeightedHead> heads);

  nn::Model& model() override { return *model_; }
  std::string x_key() const override { return x_key_; }
  bool is_scored() const override;
  std::shared_ptr<data::Transform> sample_transform() override;
  std::shared_ptr<data::Transform> validation_transform() override;
  std::vector<data::TargetMeaning> target_meanings() const override;
  /// Calls Head::fit_decoder() of each head, before a training. Returns the decoders to be kept in
  /// the configuration, by the head's name ("" for the only one).
  std::map<std::string, config::Node> fit_decoders(const EachBatch& each);
  void check_batch(const data::Batch& batch) override;
  at::Tensor training_step(const data::Batch& batch) override;
  void validation_step(const data::Batch& batch) override;
  /// The metrics. With several heads "loss" is the weighted sum; the others' names end with
  /// "/<head>".
  training::Metrics validation_end() override;
  std::vector<at::Tensor> sums() override;
  report::Findings findings() override;
  std::map<std::string, at::Tensor> preview(const data::Batch& batch) override;
  std::map<std::string, at::Tensor> preview_input(const data::Batch& batch) override;

 private:
  /// Predicts whole images through windows: an output for each head.
  std::vector<at::Tensor> predict(const at::Tensor& images);
  /// The metrics of all heads, by those of each.
  training::Metrics joined(const std::vector<training::Metrics>& of_heads) const;
  std::map<std::string, at::Tensor> shown(const data::Batch& batch,
                                          const std::vector<at::Tensor>& outputs) const;
  const std::string x_key_;
  inference::SlidingWindowOptions windows_;
  std::shared_ptr<nn::Model> model_;
  const std::vector<WeightedHead> heads_;
  std::vector<std::size_t> outputs_;  // of the model's, by head
};

/// A task of one head, with the keys of both in one map.
template <class T>
class OneHead final : public ImageTask {
 public:
  struct Options : ImageTaskOptions, T::Options {
    void visit(auto& v) {
      ImageTaskOptions::visit(v);
      T::Options::visit(v);
    }
    /// A head whose options follow from the model has `check(model)`, which gets it.
    void check() {
      expect_image_model(model);
      T::Options::check(model);
    }
  };
  explicit OneHead(const Options& options)
      : ImageTask(options,
                  {{"", std::make_shared<T>(static_cast<const typename T::Options&>(options))}}) {}
};

}  // namespace cytra::tasks
