// Part of pipelines/detection/detector.h: a checkpoint of `train experiment=detection/...`.
#include <algorithm>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>

#include "base/error.h"
#include "device/fast_precision.h"
#include "inference/models/trained_model.h"
#include "inference/predictor/input.h"
#include "inference/windows/window_run.h"
#include "nn/detection_model.h"
#include "pipelines/detection/kinds.h"
#include "pipelines/detection/tiles.h"

namespace cytra::pipelines {
namespace {

class TrainedDetector final : public Detector {
 public:
  TrainedDetector(inference::LoadedModel model,
                  std::shared_ptr<nn::DetectionModel> network,
                  c10::Device device,
                  const DetectorOptions& options)
      : model_(std::move(model)),
        network_(std::move(network)),
        device_(device),
        options_(options),
        x_key_(model_.config.at("task").get<std::string>("x_key", "raw")),
        class_key_(model_.config.find("task.class_key")),
        transforms_(model_.config.at("data.transforms"),
                    model_.config.at("task").get<std::string>("y_key", "instances")) {
    if (options_.engine.quantization == "int8_dynamic") options_.engine.quantization = "none";
    model_.place(device, device::uses_tensor_cores(options_.engine.precision, device));
    const config::Node task = model_.config.at("task");
    boxes_ = {options.conf_threshold,
              options.iou_threshold,
              // The visible limit should be reached first, since several places find the same
              // object.
              std::max(task.get<int64_t>("topk_candidates", boxes_.topk_candidates),
                       10 * options.max_detections),
              options.max_detections};
  }

  std::vector<ops::Boxes> detect(const std::vector<at::Tensor>& images) override {
    const c10::InferenceMode inference;
    std::vector<Search> searches(images.size());
    std::vector<TileInput> inputs;
    for (std::size_t i = 0; i < images.size(); ++i) {
      const at::Tensor image = prepared(images[i]);  // intensities are those of the whole
      searches[i].tiles = tiles_of(image.sizes().slice(1).vec(), options_);
      searches[i].found.resize(searches[i].tiles.size());
      for (std::size_t t = 0; t < searches[i].tiles.size(); ++t) {
        const Tile& tile = searches[i].tiles[t];
        inputs.push_back({nn::padded(*network_, tile.of(image).unsqueeze(0)),
                          tile.size(),
                          &searches[i].found[t]});
      }
    }
    // The padding of a window depends on its own size only, not on other windows, because norms
    // see the padding.
    std::ranges::stable_sort(inputs, [](const TileInput& a, const TileInput& b) {
      return a.input.sizes().vec() < b.input.sizes().vec();
    });
    const auto most = static_cast<std::size_t>(options_.batch_size);
    for (std::size_t first = 0, end = 0; first < inputs.size(); first = end) {
      while (end < inputs.size() && end - first < most &&
             inputs[end].input.sizes() == inputs[first].input.sizes())
        ++end;
      search(&inputs[first], end - first);
    }
    std::vector<ops::Boxes> found;
    for (const Search& one : searches)
      found.push_back(join_tiles(one.tiles, one.found, options_.iou_threshold));
    return found;
  }
  int64_t full_windows() const override { return full_windows_; }
  int64_t in_channels() const override { return model_.in_channels; }
  std::string fingerprint() const override {
    return fmt::format("{} {} {}", model_.fingerprint, text_of(options_), boxes_.topk_candidates);
  }

 private:
  struct Search {  // of an image
    std::vector<Tile> tiles;
    std::vector<ops::Boxes> found;  // of each
  };
  struct TileInput {   // of the network, and where its result goes
    at::Tensor input;  // (1,C,H,W), padded
    std::vector<int64_t> size;
    ops::Boxes* found;
  };
  /// One pass, of inputs of one size.
  void search(const TileInput* inputs, std::size_t count) {
    std::vector<at::Tensor> batch;
    for (std::size_t i = 0; i < count; ++i) batch.push_back(inputs[i].input);
    const std::vector<at::Tensor> levels = adaptive_(
        [this](const at::Tensor& part) { return levels_of(part.to(device_)); }, at::cat(batch));
    for (const at::Tensor& level : levels) {
      if (!level.isfinite().all().item<bool>())  // or nothing would be found, in silence
        throw DataError(
            model_.path +
            ": its output is not finite; the weights, or the image's values, may be out of range");
    }
    for (std::size_t i = 0; i < count; ++i) {
      std::vector<at::Tensor> own;
      for (const at::Tensor& level : levels)
        own.push_back(level.narrow(0, static_cast<int64_t>(i), 1));
      ops::Boxes& found = *inputs[i].found;
      found = network_->decode(own, inputs[i].size, boxes_).front();
      found.corners = found.corners.to(at::kCPU, at::kFloat).contiguous();
      found.scores = found.scores.to(at::kCPU, at::kFloat).contiguous();
      found.classes = found.classes.to(at::kCPU, at::kLong).contiguous();
      if (found.count() >= options_.max_detections) ++full_windows_;
    }
  }
  std::vector<at::Tensor> levels_of(const at::Tensor& batch) {
    if (!engine_) {
      const inference::EngineModel model{
          [network = network_](const at::Tensor& images) { return network->all(images); },
          device_,
          model_.fingerprint,
          {},
          {},
          "engine of the detector"};
      engine_ = inference::make_engine(model, options_.engine, batch);
    }
    return engine_->run(batch);
  }
  /// The image with the intensities that the training had.
  at::Tensor prepared(const at::Tensor& image) const {
    expect_detector_image(image, model_.in_channels, network_->spatial_dims());
    data::Sample sample;
    sample.id = "image";
    sample.tensors[x_key_] = image.to(at::kCPU, at::kFloat);
    if (class_key_ != nullptr && !class_key_->is_null())  // transforms of the training name it, too
      sample.tensors[class_key_->as<std::string>()] =
          at::zeros_like(sample.tensors[x_key_].slice(0, 0, 1));
    const inference::ModelInput input = transforms_.apply(std::move(sample), x_key_);
    if (input.shape != image.sizes().vec()) {
      throw ConfigError(model_.path +
                        ": the transforms of its training change the size of images (predict list, "
                        "else valid); boxes would lie elsewhere");
    }
    return input.rows(0, input.shape[1]);
  }
  inference::LoadedModel model_;
  std::shared_ptr<nn::DetectionModel> network_;
  c10::Device device_;
  DetectorOptions options_;
  std::string x_key_;
  const config::Node* class_key_;  // in model_
  inference::InputTransforms transforms_;
  nn::BoxOptions boxes_;
  std::unique_ptr<inference::Engine> engine_;  // made of the first windows
  inference::AdaptiveBatch adaptive_;
  int64_t full_windows_ = 0;
};

}  // namespace

std::unique_ptr<Detector> make_detector(const inference::LoadedModel& model,
                                        c10::Device device,
                                        const DetectorOptions& options) {
  expect_detector_options(options);
  const auto network = std::dynamic_pointer_cast<nn::DetectionModel>(model.network);
  if (!network) {
    throw ConfigError(
        "{}: a model of the task {}, which finds no boxes; expected a checkpoint of "
        "experiment=detection/..., or TorchScript",
        model.path,
        model.config.at("task").get<std::string>("_target_", "?"));
  }
  return std::make_unique<TrainedDetector>(model, network, device, options);
}

}  // namespace cytra::pipelines
