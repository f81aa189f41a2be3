// SegmentationTask: a mask or classes per voxel. One logit channel: logistic; several: they exclude
// each other.
#include <cmath>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "base/error.h"
#include "config/registry.h"
#include "data/batch.h"
#include "inference/sliding_window.h"
#include "metrics/dice.h"
#include "nn/loss.h"
#include "nn/model.h"
#include "training/task.h"

namespace cytra::tasks {
namespace {

class SegmentationTask final : public training::Task {
 public:
  struct Options {
    std::string x_key = "raw", y_key = "seg";
    config::Node model, loss;
    inference::SlidingWindowOptions inference_args;
    template <class V>
    void visit(V& v) {
      v("x_key", x_key, "the image's key in a sample");
      v("y_key", y_key, "the target's key: a mask (0, 1) or class numbers");
      v("model", model, "the network", config::component<nn::Model>());
      v("loss", loss, "what is minimised", config::component<nn::Loss>());
      v("inference_args", inference_args, "sliding window of validation and prediction");
    }
  };
  explicit SegmentationTask(const Options& options)
      : options_(options),
        model_(nn::make_model(options.model)),
        loss_(Registry<nn::Loss>::instance().make(options.loss)) {}

  nn::Model& model() override { return *model_; }

  Tensor training_step(const data::Batch& batch) override {
    const at::Tensor logits = (*model_)(image_of(batch));
    return (*loss_)(logits.to(at::kFloat), batch.at(options_.y_key));
  }

  void validation_step(const data::Batch& batch) override {
    const auto predict = [this](const at::Tensor& windows) { return (*model_)(windows); };
    const at::Tensor logits =
        inference::sliding_window(image_of(batch), predict, options_.inference_args);
    const at::Tensor& target = batch.at(options_.y_key);
    loss_sum_ += (*loss_)(logits, target).item<double>();
    ++images_;
    if (logits.size(1) == 1) {
      dice_.update(logits.gt(0).to(at::kFloat), target);
    } else {
      dice_.update(one_hot(logits.argmax(1), logits.size(1)),
                   one_hot(target.squeeze(1), logits.size(1)));
    }
  }

  training::Metrics validation_end() override {
    const training::Metrics metrics{
        {"val/loss", images_ > 0 ? loss_sum_ / static_cast<double>(images_) : std::nan("")},
        {"val/dice", dice_.compute()}};
    loss_sum_ = 0;
    images_ = 0;
    dice_.reset();
    return metrics;
  }

 private:
  const at::Tensor& image_of(const data::Batch& batch) const {
    const at::Tensor& image = batch.at(options_.x_key);
    if (image.size(1) == model_->in_channels()) return image;
    throw DataError(fmt::format("{}: {} channels, the model expects {} (set raw_im_channels)",
                                batch.ids.empty() ? "a batch" : batch.ids.front(),
                                image.size(1),
                                model_->in_channels()));
  }
  static at::Tensor one_hot(const at::Tensor& classes, int64_t count) {  // (N,...) -> (N,K,...)
    return at::one_hot(classes.to(at::kLong), count).movedim(-1, 1).to(at::kFloat);
  }
  Options options_;
  std::shared_ptr<nn::Model> model_;
  std::shared_ptr<nn::Loss> loss_;
  metrics::Dice dice_{/*include_background=*/false};
  double loss_sum_ = 0;
  int64_t images_ = 0;
};
const Registered<training::Task, SegmentationTask> registered_segmentation("SegmentationTask",
                                                                           __FILE__);

}  // namespace
}  // namespace cytra::tasks
