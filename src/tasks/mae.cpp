// MAETask: a masked autoencoder learns to make the hidden patches of images; there is no target.
// The loss is that of hidden voxels, as in cyto_dl.nn.head.mae_head.MAEHead.
#include <ATen/ATen.h>

#include "base/error.h"
#include "config/registry.h"
#include "data/loader/batch.h"
#include "inference/decoders/decoder.h"
#include "inference/windows/sliding_window.h"
#include "nn/loss.h"
#include "nn/model.h"
#include "tasks/suited.h"
#include "training/task.h"

namespace cytra::tasks {
namespace {

class MAETask final : public training::Task {
 public:
  struct Options {
    std::string x_key = "raw";
    config::Node model, loss, decoder;
    inference::SlidingWindowOptions inference_args;
    void visit(auto& v) {
      v("x_key", x_key, "the image's key in a sample");
      v("model", model, "a masked autoencoder: MAE, HieraMAE", config::component<nn::Model>());
      v("loss",
        loss,
        "the loss of the hidden voxels, which is minimised",
        config::component<nn::Loss>());
      v("decoder",
        decoder,
        "the decoder, which makes the results of a reconstruction",
        config::optional_component<inference::Decoder>());
      v("inference_args", inference_args, "sliding window of prediction");
    }
    void check() const { expect_loss_of(loss, nn::kValues); }
  };
  explicit MAETask(const Options& options)
      : options_(options),
        model_(make<nn::Model>(options.model)),
        loss_(make<nn::Loss>(options.loss)) {
    if (model_->fixed_size().empty())
      throw ConfigError("task.model: expected a masked autoencoder (MAE, HieraMAE)");
  }

  nn::Model& model() override { return *model_; }
  std::string x_key() const override { return options_.x_key; }

  Tensor training_step(const data::Batch& batch) override {
    const at::Tensor& image = batch.at(options_.x_key);
    const auto [made, mask] = reconstruct(image);
    return (*loss_)(made, image, mask);
  }

  /// Validates whole images, in adjoining parts of the model's size; a rest around them is left
  /// out.
  void validation_step(const data::Batch& batch) override {
    for (const at::Tensor& part :
         parts_of(batch.at(options_.x_key)).split(options_.inference_args.sw_batch_size)) {
      data::Batch images;
      images.tensors[options_.x_key] = part;
      Task::validation_step(images);
    }
  }

  std::map<std::string, Tensor> preview(const data::Batch& batch) override {
    const at::Tensor image = parts_of(batch.at(options_.x_key).slice(0, 0, 1)).slice(0, 0, 1);
    const auto [made, mask] = reconstruct(image);
    return {{"input", image[0]},
            {"masked", image.masked_fill(mask.to(at::kBool), 0)[0]},
            {"reconstruction", made[0]}};
  }

 private:
  /// The reconstruction in float32, and the mask of hidden voxels.
  std::pair<at::Tensor, at::Tensor> reconstruct(const at::Tensor& image) {
    const std::vector<at::Tensor> outputs = model_->all(image);
    if (outputs.size() != 2) {
      throw ConfigError(
          "task.model: expected a masked autoencoder, which gives a reconstruction and its mask");
    }
    return {outputs[0].to(at::kFloat), outputs[1]};
  }
  /// (N,C,[D,]H,W) -> (M,C,sides of the model), from the middle.
  at::Tensor parts_of(const at::Tensor& image) {
    const std::vector<int64_t> sides = model_->fixed_size();
    const auto dims = std::ssize(sides);
    at::Tensor parts = image;
    for (int64_t d = 0; d < dims && image.dim() == dims + 2; ++d) {
      const int64_t side = sides[static_cast<std::size_t>(d)], length = image.size(2 + d);
      if (length < side) return image;  // the model reports the size it needs
      parts =
          parts.narrow(2 + d, length % side / 2, length - length % side).unfold(2 + d, side, side);
    }
    return parts.movedim(1, 1 + dims).flatten(0, dims);
  }
  Options options_;
  std::shared_ptr<nn::Model> model_;
  std::shared_ptr<nn::Loss> loss_;
};
CYTRA_REGISTER(training::Task, MAETask, "MAETask");

}  // namespace
}  // namespace cytra::tasks
