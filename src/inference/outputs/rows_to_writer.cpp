// Part of inference/predictor/predictor.h: a prediction by rows into an image of the caller's.
#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include "data/sample/image_tensor.h"
#include "inference/outputs/result.h"
#include "inference/predictor/predictor.h"
#include "inference/predictor/windowed_model.h"
#include "io/grey.h"

namespace cytra::inference {
namespace {

/// Writes a result into the caller's image.
class RowsToWriter final : public ResultOutput {
 public:
  explicit RowsToWriter(io::ImageWriter& writer) : writer_(writer) {}
  void take(const ImageResult& /*result*/, const at::Tensor& rows) override {
    writer_.write(data::to_image(rows, writer_.info().dtype, {}));
  }
  void finish(ResultFiles& /*files*/) override { writer_.finish(); }

 private:
  io::ImageWriter& writer_;
};

}  // namespace

void Predictor::predict(const io::ImageReader& image, io::ImageWriter& output) const {
  const c10::InferenceMode inference_mode;
  const std::string id = "the image";
  data::Sample sample;
  sample.id = id;
  sample.geometries[windowed_->x_key] = image.info().geometry;
  const std::shared_ptr<const io::ImageReader> given(&image, [](const io::ImageReader*) {});
  sample.unread[windowed_->x_key] = {
      windowed_->transforms.take_grey() ? io::grey_of(given, id) : given,
      io::within({}, image.info().shape, id),
      windowed_->image_dims(image.info().shape[1]),
      id};
  const auto input = std::make_shared<const ModelInput>(
      windowed_->transforms.apply(std::move(sample), windowed_->x_key, {}, by_rows_from()));
  windowed_->check(*input);
  ImageResult::Outputs outputs;
  outputs.push_back(std::make_unique<RowsToWriter>(output));
  const ResultOptions options{windowed_->steps};
  ImageResult result(*this, options, input, std::move(outputs));
  result.run();
}

}  // namespace cytra::inference
