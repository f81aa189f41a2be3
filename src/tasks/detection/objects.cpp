#include "tasks/detection/objects.h"

#include <algorithm>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "data/sample/same_grid.h"
#include "io/annotations/annotations.h"
#include "io/annotations/paint.h"
#include "ops/boxes/label_boxes.h"
#include "tasks/instances/labels.h"

namespace cytra::tasks {
namespace {

class DetectionTarget final : public data::Transform {
 public:
  DetectionTarget(const ObjectBoxes& objects, MakeDetectionTarget target, const std::string& more)
      : objects_(objects), target_(std::move(target)) {
    name = "DetectionTask";
    text = fmt::format("{} {} {} {} {} {} {} {}",
                       name,
                       objects.x_key,
                       objects.y_key,
                       objects.class_key.value_or(""),
                       objects.in_channels,
                       objects.num_classes,
                       objects.min_size,
                       more);
  }
  void apply(data::Sample& sample, Rng& /*rng*/) const override {
    data::expect_channels(sample, objects_.x_key, objects_.in_channels);
    const std::vector<int64_t> size = sample.size(objects_.x_key);
    data::expect_same_grid(sample, objects_.y_key, objects_.x_key);
    if (objects_.class_key) data::expect_same_grid(sample, *objects_.class_key, objects_.x_key);
    renumber_large_labels(sample, objects_.y_key, {});
    expect_labels(sample, objects_.y_key, size);
    at::Tensor classes;
    if (objects_.class_key) {
      expect_labels(sample, *objects_.class_key, size);
      classes = sample.at(*objects_.class_key);
    }
    ops::Boxes boxes;
    try {
      boxes = objects_.of(sample.at(objects_.y_key), classes);
    } catch (const DataError& error) {
      throw DataError(sample.file_of(objects_.y_key) + ": " + error.what());
    }
    if (target_) sample.tensors[objects_.y_key] = target_(boxes, size);
  }

 private:
  void expect_labels(data::Sample& sample,
                     const std::string& key,
                     const std::vector<int64_t>& image) const {
    const at::Tensor& labels = sample.at(key);
    const std::vector<int64_t> size = labels.sizes().slice(1).vec();
    // Boxes that lie over each other have layers.
    const auto source = sample.sources.find(key);
    const bool has_layers =
        source != sample.sources.end() && io::is_annotation_path(source->second.path);
    if ((labels.size(0) == 1 || has_layers) && labels.dim() == objects_.spatial_dims + 1 &&
        size == image)
      return;
    throw DataError("{}: ({}), expected one channel of labels in the {} of the image, (1,{})",
                    sample.file_of(key),
                    fmt::join(labels.sizes(), ","),
                    objects_.spatial_dims == 2 ? "plane" : "grid",
                    fmt::join(image, ","));
  }
  ObjectBoxes objects_;
  MakeDetectionTarget target_;
};

}  // namespace

ops::Boxes ObjectBoxes::of(const at::Tensor& labels, const at::Tensor& classes) const {
  const at::Tensor numbers = labels.to(at::kCPU, at::kFloat).contiguous();
  // Axes of ops::Box that the image has; of a plane Z is the channel.
  const int64_t dims = numbers.dim() - 1;
  const auto volume_of = [dims](const at::Tensor& one) { return dims == 2 ? one : one[0]; };
  if (numbers.ne(numbers.round()).any().item<bool>())
    throw DataError("labels with fractions, expected whole numbers; resampling needs mode nearest");
  if (numbers.lt(0).any().item<bool>()) {
    throw DataError(
        "negative labels, expected 0 for none; where one is the background, "
        "++task.background={:g}",
        numbers.min().item<double>());
  }
  const at::Tensor kinds =
      classes.defined() ? volume_of(classes.to(at::kCPU, at::kLong).contiguous()) : at::Tensor();
  const bool are_named = !kinds.defined() && num_classes > 1;  // labels hold their classes
  std::vector<float> corners;
  std::vector<int64_t> kept;  // their classes
  struct Object {
    float label;
    ops::Box box;
    at::Tensor layer;
  };
  std::vector<Object> objects;
  for (const at::Tensor& one : numbers.split(1)) {
    const at::Tensor layer = volume_of(one);
    for (const auto& [label, box] : ops::boxes_of<float>(layer))
      objects.push_back({label, box, layer});
  }
  for (const auto& [label, box, layer] : objects) {
    int64_t narrowest = INT64_MAX;
    for (int64_t axis = 3 - dims; axis < 3; ++axis)
      narrowest = std::min(narrowest, box.size(static_cast<std::size_t>(axis)));
    if (narrowest < min_size) continue;
    int64_t number = 0;
    if (are_named) {
      number = static_cast<int64_t>(label) / io::box_class(num_classes) - 1;
      if (number < 0 || number >= num_classes) {
        throw DataError(
            "labels without classes, but num_classes={}: expected task.class_key, the column of an "
            "image of classes, or annotations whose objects have classes",
            num_classes);
      }
    }
    if (kinds.defined()) {
      const at::Tensor own = box.part_of(kinds).masked_select(box.part_of(layer).eq(label));
      if (own.min().item<int64_t>() < 0 || own.max().item<int64_t>() > num_classes) {
        throw DataError("{}: classes {} to {}, expected 0 for none, 1 to {}",
                        class_key.value_or("classes"),
                        own.min().item<int64_t>(),
                        own.max().item<int64_t>(),
                        num_classes);
      }
      const at::Tensor counts = at::bincount(own, {}, num_classes + 1).slice(0, 1);
      if (counts.max().item<int64_t>() == 0) continue;
      number = counts.argmax().item<int64_t>();
    }
    kept.push_back(number);
    for (int64_t axis = 2; axis >= 3 - dims; --axis)
      corners.push_back(static_cast<float>(box.first[static_cast<std::size_t>(axis)]));
    for (int64_t axis = 2; axis >= 3 - dims; --axis)
      corners.push_back(static_cast<float>(box.last[static_cast<std::size_t>(axis)] + 1));
  }
  const auto count = std::ssize(kept);
  return {at::tensor(corners, at::TensorOptions(at::kFloat)).reshape({count, 2 * dims}),
          {},
          at::tensor(kept, at::TensorOptions(at::kLong))};
}

std::shared_ptr<data::Transform> make_detection_transform(const ObjectBoxes& objects,
                                                          MakeDetectionTarget target,
                                                          const std::string& text) {
  return std::make_shared<DetectionTarget>(objects, std::move(target), text);
}

}  // namespace cytra::tasks
