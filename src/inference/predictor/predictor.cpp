#include "inference/predictor/predictor.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/lists.h"
#include "inference/predictor/windowed_model.h"

namespace cytra::inference {

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
    throw DataError("an image of ({}), expected (C,{}) or (N,C,{})",
                    fmt::join(image.sizes(), ","),
                    dims == 2 ? "H,W" : "D,H,W",
                    dims == 2 ? "H,W" : "D,H,W");
  }
  if (image.dim() == dims + 2)
    return at::stack(mapped(image.unbind(0), [&](const at::Tensor& one) { return predict(one); }));
  ModelInput input(image.to(at::kFloat));
  input.sample.id = "the image";
  windowed_->check(input);
  Result result{windowed_->run(input, windowed_->windows(input))};
  result.plane_axis = windowed_->plane_axis(input.shape.size() - 1).value_or(-1);
  apply_all(windowed_->steps, result);
  return result.values;
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
