// DetectionTask: a box, a score and a class of each object. The objects are those of a
// label image, so whatever moves voxels moves the boxes. What is learned of them is the model's
// (nn/detection_model.h).
#include <algorithm>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "base/error.h"
#include "config/registry.h"
#include "data/loader/batch.h"
#include "nn/detection_model.h"
#include "report/findings.h"
#include "tasks/annotation_targets.h"
#include "tasks/detection/objects.h"
#include "tasks/instances/labels.h"
#include "tasks/metric_set.h"
#include "tasks/suited.h"
#include "training/mean_loss.h"
#include "training/task.h"

namespace cytra::tasks {
namespace {

class DetectionTask final : public training::Task {
 public:
  struct Options : ObjectOptions {
    static constexpr const char* kPurpose = kBoxes;
    std::string x_key = "raw", y_key = "instances";
    std::optional<std::string> class_key;
    std::vector<std::string> class_names;
    config::Node model, metrics;
    double center_sampling_radius = 1.5, score_thresh = 0.05, nms_thresh = 0.6;
    int64_t min_size = 2, topk_candidates = 1000, detections_per_img = 10000;
    void visit(auto& v) {
      v("x_key", x_key, "the image's key in a sample");
      visit_objects(v, y_key);
      v("class_key",
        class_key,
        "key of an image of classes, 0 for none and 1 to num_classes: an object gets the most "
        "frequent class inside it; null: there is one class, or annotations say it");
      v("class_names",
        class_names,
        "names of the classes, for metrics and results; []: those of the annotations, or numbers");
      v("model", model, "the network: FCOS", config::component<nn::Model>());
      v("metrics",
        metrics,
        "metrics of the boxes of whole images, each under a name; null or []: MeanAveragePrecision",
        config::map_of<metrics::Metric>());
      v("min_size",
        min_size,
        "pixels; narrower objects, such as crops leave at their borders, do not count",
        1,
        1e6);
      v("center_sampling_radius",
        center_sampling_radius,
        "places within this distance of an object's centre learn it; in strides of their level",
        0.5,
        1e3);
      v("score_thresh",
        score_thresh,
        "in validation: objects with a lower score are left out",
        0,
        1);
      v("nms_thresh",
        nms_thresh,
        "overlap (IoU) of the boxes of two objects of a class above which only the better one is "
        "kept",
        0,
        1);
      v("topk_candidates",
        topk_candidates,
        "how many of the best boxes of each level go into that comparison",
        1,
        1e6);
      v("detections_per_img",
        detections_per_img,
        "how many of the best objects of an image are kept, in validation",
        1,
        1e6);
    }
  };
  explicit DetectionTask(const Options& options)
      : options_(options),
        model_(make_model_of<nn::DetectionModel>(
            options.model, "no network that finds objects; expected model=fcos")),
        metrics_(metrics_or_usual(options.metrics),
                 {metrics::Metric::Input::boxes},
                 model_->num_classes()) {
    const auto named = std::ssize(options.class_names);
    if (named > 0 && named != model_->num_classes()) {
      throw ConfigError(
          "class_names: {} names, expected num_classes={}", named, model_->num_classes());
    }
    objects_ = {options.x_key,
                options.y_key,
                options.class_key,
                model_->in_channels(),
                model_->num_classes(),
                options.min_size,
                model_->spatial_dims()};
  }

  nn::Model& model() override { return *model_; }
  std::string x_key() const override { return options_.x_key; }
  std::shared_ptr<data::Transform> sample_transform() override {
    return make_detection_transform(
        objects_,
        [model = model_, radius = options_.center_sampling_radius](
            const ops::Boxes& boxes, const std::vector<int64_t>& size) {
          return model->target(boxes, size, radius);
        },
        fmt::format("{} {}", config::to_json(options_.model), options_.center_sampling_radius));
  }
  std::shared_ptr<data::Transform> validation_transform() override {
    return make_detection_transform(objects_, {}, "");
  }

  std::vector<data::TargetMeaning> target_meanings() const override {
    return {meaning_of_objects(options_.x_key, options_.y_key)};
  }

  Tensor training_step(const data::Batch& batch) override {
    return model_->loss(model_->all(batch.at(options_.x_key)), batch.at(options_.y_key));
  }

  void validation_step(const data::Batch& batch) override {
    const at::Tensor& images = batch.at(options_.x_key);
    const std::vector<ops::Boxes> truth = truth_of(batch);
    const at::Tensor input = nn::padded(*model_, images);
    const auto levels = model_->all(input);
    std::vector<at::Tensor> targets;
    for (const ops::Boxes& boxes : truth) {
      targets.push_back(
          model_->target(boxes, input.sizes().slice(2).vec(), options_.center_sampling_radius));
    }
    losses_.add(model_->loss(levels, at::stack(targets)));
    const auto found = model_->decode(levels, images.sizes().slice(2).vec(), boxes());
    metrics_.update([&](metrics::Metric::Input) {
      metrics::Compared made;
      made.found = found;
      made.objects = truth;
      return made;
    });
    for (const ops::Boxes& boxes : truth)
      counts_ += at::tensor({int64_t{1}, boxes.count()}, at::TensorOptions(at::kDouble));
  }

  training::Metrics validation_end() override {
    const training::Metrics results = values();
    losses_.take();
    const double* counts = counts_.const_data_ptr<double>();
    if (counts[0] > 0 && counts[1] == 0) no_objects_.warn(options_.y_key);
    counts_.zero_();
    metrics_.reset();
    return results;
  }

  report::Findings findings() override {
    report::Findings found;
    found.all.metrics = values();
    metrics_.show(found);
    for (std::size_t k = 0; k < found.precision_recall.size(); ++k) {
      std::string& name = found.precision_recall[k].first;
      if (found.precision_recall.size() == 1) name = "objects";
      if (!options_.class_names.empty()) name = options_.class_names[k];
      name += ", IoU 0.5";
    }
    return found;
  }

  std::vector<Tensor> sums() override {
    std::vector<Tensor> all = metrics_.sums();
    all.insert(all.end(), {losses_.sums(), counts_});
    return all;
  }
  void gather(const std::function<Tensor(const Tensor& rows)>& of_all) override {
    metrics_.gather(of_all);
  }

  std::map<std::string, Tensor> preview(const data::Batch& batch) override {
    const at::Tensor image = batch.at(options_.x_key).slice(0, 0, 1);
    std::map<std::string, Tensor> images = preview_input(batch);
    images["prediction"] = outlines_of(nn::find_boxes(*model_, image, boxes()).front(), image[0]);
    return images;
  }
  /// Training batches have the targets of the levels in place of the labels, where there are any.
  std::map<std::string, Tensor> preview_input(const data::Batch& batch) override {
    const at::Tensor image = batch.at(options_.x_key)[0], target = batch.at(options_.y_key)[0];
    const bool is_of_levels = target.sizes().slice(1) != image.sizes().slice(1);
    const ops::Boxes objects = is_of_levels ? model_->objects_of(target) : truth_of(batch).front();
    return {{"input", image}, {"target", outlines_of(objects, image)}};
  }

 private:
  training::Metrics values() const {
    training::Metrics all{{"loss", losses_.mean()}};
    all.merge(with_class_names(metrics_.compute(), options_.class_names, 0));
    return all;
  }
  static config::Node metrics_or_usual(const config::Node& given) {
    if (!given.is_null() && !given.map.empty()) return given;
    return config::parse_yaml("map: {_target_: MeanAveragePrecision}", "DetectionTask");
  }
  std::vector<ops::Boxes> truth_of(const data::Batch& batch) const {
    const at::Tensor labels = batch.at(options_.y_key);
    std::vector<ops::Boxes> truth;
    for (int64_t i = 0; i < labels.size(0); ++i) {
      truth.push_back(objects_.of(
          labels[i], options_.class_key ? batch.at(*options_.class_key)[i] : at::Tensor()));
    }
    return truth;
  }
  /// The edges of boxes in an image (C,[D,]H,W), of the value of their scores.
  static at::Tensor outlines_of(const ops::Boxes& boxes, const at::Tensor& image) {
    at::Tensor outlines =
        at::zeros_like(image.slice(0, 0, 1), at::TensorOptions(at::kCPU).dtype(at::kFloat));
    const at::Tensor corners = boxes.corners.round().to(at::kLong);
    const int64_t dims = boxes.dims();
    for (int64_t i = 0; i < boxes.count(); ++i) {
      at::Tensor box = outlines;
      for (int64_t axis = 1; axis <= dims; ++axis) {
        const int64_t column = dims - axis, length = outlines.size(axis);  // X comes first
        const auto end = [&](int64_t k, int64_t least, int64_t most) {
          return std::clamp(corners[i][k].item<int64_t>(), least, most);
        };
        const int64_t first = end(column, 0, length - 1);
        box = box.slice(axis, first, end(dims + column, first + 1, length));
      }
      const double value = boxes.scores.defined() ? boxes.scores[i].item<double>() : 1;
      for (int64_t axis = 1; axis <= dims; ++axis) {
        box.select(axis, 0).fill_(value);
        box.select(axis, -1).fill_(value);
      }
    }
    return outlines;
  }
  nn::BoxOptions boxes() const {
    return {options_.score_thresh,
            options_.nms_thresh,
            options_.topk_candidates,
            options_.detections_per_img};
  }
  Options options_;
  std::shared_ptr<nn::DetectionModel> model_;
  ObjectBoxes objects_;
  MetricSet metrics_;
  training::MeanLoss losses_;
  at::Tensor counts_ = at::zeros({2}, at::TensorOptions(at::kDouble));  // images, their objects
  NoObjects no_objects_;
};
CYTRA_REGISTER(training::Task, DetectionTask, "DetectionTask");

}  // namespace
}  // namespace cytra::tasks
