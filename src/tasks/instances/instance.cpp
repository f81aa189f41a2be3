// InstanceTask: a number for each object, 2D and 3D. The network learns flows or stars
// (instances/targets.h), which the decoder turns into labels.
#include <cmath>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "base/error.h"
#include "base/log.h"
#include "config/registry.h"
#include "data/batch.h"
#include "inference/decoder.h"
#include "inference/postprocess.h"
#include "inference/sliding_window.h"
#include "metrics/metric.h"
#include "nn/loss.h"
#include "nn/model.h"
#include "tasks/instances/labels.h"
#include "tasks/instances/targets.h"
#include "tasks/suited.h"
#include "training/task.h"

namespace cytra::tasks {
namespace {

class InstanceTask final : public training::Task {
 public:
  struct Options {
    std::string x_key = "raw", y_key = "seg", method = "flows";
    std::vector<double> anisotropy, object_values;
    std::optional<int64_t> ignore_index;
    config::Node model, loss, metrics, decoder;
    inference::SlidingWindowOptions inference_args;
    template <class V>
    void visit(V& v) {
      v("x_key", x_key, "the image's key in a sample");
      v("y_key", y_key, "the target's key: labels, 0 for none and a number for each object");
      v("object_values",
        object_values,
        "of a mask in place of labels: values whose connected voxels are an object each, as [255]");
      v("method",
        method,
        "what the network learns. flows: directions to the objects' centres, as Cellpose; for any "
        "shape. stars: distances to their borders, as StarDist; for roundish ones",
        {"flows", "stars"});
      v("anisotropy",
        anisotropy,
        "3D stars: voxel sizes Z, Y, X, in any unit; null: equal",
        1e-12,
        1e12);
      v("ignore_index", ignore_index, "voxels with this label do not count; null: all count");
      v("model", model, "the network", config::component<nn::Model>());
      v("loss",
        loss,
        "what is minimised; null: CellposeLoss of flows, StarDistLoss of stars",
        config::optional_component<nn::Loss>());
      v("metrics", metrics, "of the objects of whole images", config::map_of<metrics::Metric>());
      v("decoder", decoder, "what makes labels", config::component<inference::Decoder>());
      v("inference_args", inference_args, "sliding window of validation and prediction");
    }
    void check() const {
      expect_image_model(model);
      expect_loss_of(loss, method == "flows" ? Learned::flows : Learned::stars);
      if (!anisotropy.empty() && anisotropy.size() != 3)
        throw ConfigError(
            fmt::format("task.anisotropy: {} numbers, expected Z, Y, X", anisotropy.size()));
    }
  };
  explicit InstanceTask(const Options& options)
      : options_(options),
        model_(make<nn::Model>(options.model)),
        loss_(options.loss.is_null()
                  ? make<nn::Loss>(options.method == "flows" ? "_target_: CellposeLoss"
                                                             : "_target_: StarDistLoss")
                  : make<nn::Loss>(options.loss)),
        steps_(make<inference::Decoder>(options.decoder)->steps("labels")) {
    const int64_t dims = model_->spatial_dims(), channels = model_->out_channels();
    const bool has_flows = options.method == "flows";
    if (has_flows ? channels != dims + 1 : channels < dims + 2) {
      throw ConfigError(fmt::format(
          "task.model: {} channels, task.method={} in {} dimensions takes {}",
          channels,
          options.method,
          dims,
          has_flows ? fmt::format("{}: a flow along each, and the object", dims + 1)
                    : fmt::format("1 and a ray's distance each, usually {}", dims == 2 ? 33 : 97)));
    }
    targets_ = {options.method, dims, {}, options.anisotropy, options.ignore_index};
    if (!has_flows) targets_.rays = ops::make_rays(channels - 1, dims, options.anisotropy);
    for (const auto& [name, node] : options.metrics.map) {
      metrics_.push_back(make<metrics::Metric>(node));
      if (metrics_.back()->input() != metrics::Metric::Input::objects) {
        throw ConfigError(
            fmt::format("task.metrics.{}: compares no objects, as task=instance has; expected "
                        "metrics=[average_precision] or another of objects",
                        name));
      }
      metrics_.back()->expect(1);
    }
  }

  nn::Model& model() override { return *model_; }
  std::shared_ptr<data::Transform> sample_transform() override { return transform(true); }
  std::shared_ptr<data::Transform> validation_transform() override { return transform(false); }

  std::vector<data::TargetMeaning> target_meanings() const override {
    return {meaning_of_objects(options_.x_key, options_.y_key, options_.ignore_index)};
  }

  Tensor training_step(const data::Batch& batch) override {
    std::vector<at::Tensor> levels;
    for (const at::Tensor& level : model_->all(batch.at(options_.x_key)))
      levels.push_back(at_least_float(level));
    return loss_->of_levels(levels, batch.at(options_.y_key));
  }

  void validation_step(const data::Batch& batch) override {
    const at::Tensor values = predict(batch.at(options_.x_key));
    const at::Tensor labels = batch.at(options_.y_key);
    const at::Tensor loss = (*loss_)(values, targets_.of(labels).to(values.device()));
    loss_sums_[0] += loss.item<double>();
    loss_sums_[1] += 1;
    loss_sums_[2] += labels.gt(0).any().to(at::kCPU, at::kDouble);
    if (metrics_.empty()) return;
    metrics::Compared compared{labels_of(values), labels.cpu()};
    if (options_.ignore_index) compared.mask = compared.truth.ne(*options_.ignore_index);
    if (options_.ignore_index) compared.truth = compared.truth * compared.mask;
    for (const io::Geometry& geometry : batch.geometries)
      compared.spacing_um.emplace_back(geometry.spacing_um.end() - model_->spatial_dims(),
                                       geometry.spacing_um.end());
    for (const auto& metric : metrics_) metric->update(compared);
  }

  training::Metrics validation_end() override {
    const double* sums = loss_sums_.const_data_ptr<double>();
    training::Metrics results{{"loss", sums[1] > 0 ? sums[0] / sums[1] : std::nan("")}};
    for (const auto& metric : metrics_) {
      results.merge(metric->compute());
      metric->reset();
    }
    if (sums[1] > 0 && sums[2] == 0 && !has_doubted_) {
      has_doubted_ = true;
      log::warn("{}", words_for_no_objects(options_.y_key));
    }
    loss_sums_.zero_();
    return results;
  }

  std::vector<Tensor> sums() override {
    std::vector<Tensor> all{loss_sums_};
    for (const auto& metric : metrics_) {
      for (const at::Tensor& sum : metric->sums()) all.push_back(sum);
    }
    return all;
  }

  std::map<std::string, Tensor> preview(const data::Batch& batch) override {
    const at::Tensor image = batch.at(options_.x_key).slice(0, 0, 1);
    const at::Tensor target = batch.at(options_.y_key)[0];
    const int64_t object = targets_.method == "flows" ? -1 : 0;  // of a batch of the training
    return {{"input", image[0]},
            {"target", target.select(0, target.size(0) == 1 ? 0 : object).unsqueeze(0)},
            {"prediction", labels_of(predict(image))[0].to(at::kFloat)}};
  }

 private:
  std::shared_ptr<data::Transform> transform(bool makes_targets) const {
    return make_instance_transform(
        options_.x_key, options_.y_key, model_->in_channels(), targets_, makes_targets);
  }
  at::Tensor predict(const at::Tensor& image) {
    const auto model = [this](const at::Tensor& windows) { return (*model_)(windows); };
    return inference::sliding_window(image, model, options_.inference_args);
  }
  /// (N,K,...) -> (N,1,...) int32, on the CPU.
  at::Tensor labels_of(const at::Tensor& values) const {
    std::vector<at::Tensor> images;
    for (const at::Tensor& image : values.cpu().unbind(0)) {
      inference::Result result{image, false, {}};
      inference::apply_all(steps_, result);
      images.push_back(result.values);
    }
    return at::stack(images);
  }
  static at::Tensor at_least_float(const at::Tensor& values) {
    return values.scalar_type() == at::kDouble ? values : values.to(at::kFloat);
  }
  Options options_;
  std::shared_ptr<nn::Model> model_;
  std::shared_ptr<nn::Loss> loss_;
  inference::PostprocessSteps steps_;
  InstanceTargets targets_;
  std::vector<std::shared_ptr<metrics::Metric>> metrics_;
  at::Tensor loss_sums_ =  // sum, batches, batches with objects
      at::zeros({3}, at::TensorOptions(at::kDouble));
  bool has_doubted_ = false;  // a validation without objects is told once
};
CYTRA_REGISTER(training::Task, InstanceTask, "InstanceTask");

}  // namespace
}  // namespace cytra::tasks
