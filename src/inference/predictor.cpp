#include "inference/predictor.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "data/image_tensor.h"
#include "inference/result.h"
#include "inference/windowed_model.h"
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

Predictor Predictor::load(const std::string& checkpoint, const PredictorOptions& options) {
  CheckpointOptions named;
  named.ckpt_path = {checkpoint};
  return {load_models(named), options};
}

Predictor::Predictor(std::vector<LoadedModel> models, const PredictorOptions& options)
    : windowed_(std::make_shared<WindowedModel>(models, options)) {}

Predictor::Predictor(std::shared_ptr<const WindowedModel> windowed)
    : windowed_(std::move(windowed)) {}

Predictor Predictor::with(const std::string& form, double threshold) const {
  return Predictor(std::make_shared<const WindowedModel>(*windowed_, form, threshold));
}

const LoadedModel& Predictor::model() const {
  return windowed_->model;
}

std::string Predictor::engine() const {
  return windowed_->engine();
}

Tensor Predictor::predict(const Tensor& image) const {
  const c10::InferenceMode inference_mode;
  const int64_t dims = windowed_->image_dims();
  if (image.dim() != dims + 1 && image.dim() != dims + 2) {
    throw DataError(fmt::format("an image of ({}), expected (C,{}) or (N,C,{})",
                                fmt::join(image.sizes(), ","),
                                dims == 2 ? "H,W" : "D,H,W",
                                dims == 2 ? "H,W" : "D,H,W"));
  }
  if (image.dim() == dims + 2) {
    std::vector<at::Tensor> results;
    for (const at::Tensor& one : image.unbind(0)) results.push_back(predict(one));
    return at::stack(results);
  }
  ModelInput input(image.to(at::kFloat));
  input.sample.id = "the image";
  windowed_->check(input);
  Result result{windowed_->run(input, windowed_->windows(input))};
  apply_all(windowed_->steps, result);
  return result.values;
}

void Predictor::predict(const io::ImageReader& image, io::ImageWriter& output) const {
  const c10::InferenceMode inference_mode;
  const std::string id = "the image";
  data::Sample sample;
  sample.id = id;
  sample.geometries[windowed_->x_key] = image.info().geometry;
  const std::shared_ptr<const io::ImageReader> given(&image, [](const io::ImageReader*) {});
  sample.unread[windowed_->x_key] = {
      windowed_->model.in_channels == 1 ? io::grey_of(given, id) : given,
      io::within({}, image.info().shape, id),
      windowed_->image_dims(),
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

io::ImageInfo Predictor::describe(const io::ImageInfo& image) const {
  io::ImageInfo info = image;
  const bool are_objects = !windowed_->steps.empty();
  info.dtype = are_objects ? io::Dtype::u32 : dtype_of(windowed_->finish);
  info.shape[0] = are_objects ? 1 : windowed_->finish.channels(windowed_->model.out_channels);
  info.scenes = info.levels = info.timepoints = 1;
  info.channel_names.clear();
  for (int64_t k = 0; k < info.shape[0]; ++k) {
    info.channel_names.push_back(
        info.shape[0] == 1 && windowed_->decoder->is_labels(windowed_->form)
            ? windowed_->y_key
            : fmt::format("{} {} {}", windowed_->y_key, windowed_->form, k));
  }
  return info;
}

}  // namespace cytra::inference
