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
        loss_(make<nn::Loss>(options.loss)) {}

  nn::Model& model() override { return *model_; }

  Tensor training_step(const data::Batch& batch) override {
    return (*loss_)(at_least_float((*model_)(image_of(batch))), batch.at(options_.y_key));
  }

  void validation_step(const data::Batch& batch) override {
    const at::Tensor logits = predict(image_of(batch));
    const at::Tensor& target = batch.at(options_.y_key);
    const at::Tensor loss = (*loss_)(logits, target).to(at::kDouble);
    if (loss_sums_.device() != loss.device()) loss_sums_ = loss_sums_.to(loss.device());
    loss_sums_.add_(at::stack({loss, at::ones_like(loss)}));
    const auto [prediction, truth] = as_classes(logits, target);
    dice_.update(prediction, truth);
  }

  training::Metrics validation_end() override {
    const at::Tensor sums = loss_sums_.cpu();
    const double* numbers = sums.const_data_ptr<double>();
    const training::Metrics metrics{
        {"loss", numbers[1] > 0 ? numbers[0] / numbers[1] : std::nan("")},
        {"dice", dice_.compute()}};
    loss_sums_ = no_loss();
    dice_.reset();
    return metrics;
  }

  std::vector<Tensor> sums() override { return {loss_sums_, dice_.sums()}; }

  std::map<std::string, Tensor> preview(const data::Batch& batch) override {
    const at::Tensor image = image_of(batch).slice(0, 0, 1);
    const at::Tensor logits = predict(image);
    const at::Tensor target = batch.at(options_.y_key)[0];
    const at::Tensor prediction =
        logits.size(1) == 1 ? at::sigmoid(logits[0]) : logits[0].argmax(0, true).to(at::kFloat);
    return {{"input", image[0]}, {"target", target}, {"prediction", prediction}};
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
  at::Tensor predict(const at::Tensor& image) {
    const auto model = [this](const at::Tensor& windows) { return (*model_)(windows); };
    return inference::sliding_window(image, model, options_.inference_args);
  }
  /// Losses are computed in float32 at least.
  static at::Tensor at_least_float(const at::Tensor& logits) {
    return logits.scalar_type() == at::kDouble ? logits : logits.to(at::kFloat);
  }
  static at::Tensor no_loss() { return at::zeros({2}, at::TensorOptions(at::kDouble)); }
  /// Prediction and truth as the metrics take them: (N,K,...), 0 or 1.
  static std::pair<at::Tensor, at::Tensor> as_classes(const at::Tensor& logits,
                                                      const at::Tensor& target) {
    if (logits.size(1) == 1) return {logits.gt(0).to(at::kFloat), target};
    return {one_hot(logits.argmax(1), logits.size(1)), one_hot(target.squeeze(1), logits.size(1))};
  }
  static at::Tensor one_hot(const at::Tensor& classes, int64_t count) {  // (N,...) -> (N,K,...)
    return at::one_hot(classes.to(at::kLong), count).movedim(-1, 1).to(at::kFloat);
  }
  Options options_;
  std::shared_ptr<nn::Model> model_;
  std::shared_ptr<nn::Loss> loss_;
  metrics::Dice dice_{/*include_background=*/false};
  at::Tensor loss_sums_ = no_loss();  // the sum over batches, and their number
};
const Registered<training::Task, SegmentationTask> registered_segmentation("SegmentationTask",
                                                                           __FILE__);

}  // namespace
}  // namespace cytra::tasks
