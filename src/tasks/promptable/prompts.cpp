#include "tasks/promptable/prompts.h"

#include <algorithm>
#include <numeric>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ops/boxes/label_boxes.h"
#include "tasks/instances/labels.h"

namespace cytra::tasks {
namespace {

class PromptedSample final : public data::Transform {
 public:
  PromptedSample(const std::string& x_key,
                 const std::string& y_key,
                 const PromptOptions& options,
                 bool is_training)
      : x_key_(x_key), y_key_(y_key), options_(options), is_training_(is_training) {
    name = "PromptableTask";
    text = fmt::format("{} {} {} {} {} {} {} {} {} {} {}",
                       name,
                       x_key,
                       y_key,
                       options.side,
                       fmt::join(options.pixels.mean, ","),
                       fmt::join(options.pixels.std, ","),
                       options.boxes,
                       options.jitter,
                       options.jitter_max,
                       options.min_area,
                       is_training);
  }
  bool is_random() const override { return is_training_; }

  void apply(data::Sample& sample, Rng& rng) const override {
    prepare_objects(sample, y_key_, x_key_);
    at::Tensor& image = sample.stored(x_key_);  // bytes stay bytes: they are not stretched
    const nn::SquareImage square = nn::square_image(image, options_.side, options_.pixels);
    image = square.image;
    if (!is_training_) return;
    at::Tensor& labels = sample.at(y_key_);
    labels = nn::square_labels(labels[0], square.placement, options_.side).unsqueeze(0);
    sample.tensors[kPromptBoxes] = drawn(labels[0], square.placement, rng);
  }

 private:
  /// A number of objects, each as often as the others: all of them repeatedly, or a part of them.
  at::Tensor drawn(const at::Tensor& labels, const nn::Placement& placement, Rng& rng) const {
    const at::Tensor all = boxes_of_labels(labels, options_.min_area);
    at::Tensor boxes = at::zeros({options_.boxes, 5});
    const int64_t count = all.size(0);
    if (count == 0) return boxes;
    std::vector<int64_t> order(static_cast<std::size_t>(count));
    std::iota(order.begin(), order.end(), 0);
    for (int64_t i = 0; i < options_.boxes; ++i) {
      const int64_t place = i % count;
      const auto other =
          place + static_cast<int64_t>(rng.below(static_cast<uint64_t>(count - place)));
      std::swap(order[static_cast<std::size_t>(place)], order[static_cast<std::size_t>(other)]);
      const float* const box =
          all.const_data_ptr<float>() + order[static_cast<std::size_t>(place)] * 5;
      move(box, boxes.mutable_data_ptr<float>() + i * 5, placement, rng);
    }
    return boxes;
  }
  void move(const float* box, float* moved, const nn::Placement& placement, Rng& rng) const {
    const auto shifted = [&](float value, float side, int64_t most) {
      const double shift = std::clamp(rng.normal() * options_.jitter * static_cast<double>(side),
                                      -options_.jitter_max,
                                      options_.jitter_max);
      return static_cast<float>(
          std::clamp(static_cast<double>(value) + shift, 0.0, static_cast<double>(most)));
    };
    const float width = box[2] - box[0], height = box[3] - box[1];
    const float x0 = shifted(box[0], width, placement.scaled_width);
    const float y0 = shifted(box[1], height, placement.scaled_height);
    const float x1 = shifted(box[2], width, placement.scaled_width);
    const float y1 = shifted(box[3], height, placement.scaled_height);
    moved[0] = std::min(x0, x1);
    moved[1] = std::min(y0, y1);
    moved[2] = std::max(x0, x1);
    moved[3] = std::max(y0, y1);
    moved[4] = box[4];
  }
  std::string x_key_, y_key_;
  PromptOptions options_;
  bool is_training_;
};

}  // namespace

at::Tensor boxes_of_labels(const at::Tensor& labels, int64_t min_area) {
  const at::Tensor dense = labels.to(at::kCPU, at::kFloat).contiguous();
  std::vector<float> rows;
  for (const auto& [number, box] : ops::boxes_of<float>(dense.unsqueeze(0))) {
    const at::Tensor part = box.part_of(dense.unsqueeze(0));
    if (part.eq(number).sum().item<int64_t>() < min_area) continue;
    rows.insert(rows.end(),
                {static_cast<float>(box.first[2]),
                 static_cast<float>(box.first[1]),
                 static_cast<float>(box.last[2] + 1),
                 static_cast<float>(box.last[1] + 1),
                 number});
  }
  return at::tensor(rows, at::kFloat).view({-1, 5});
}

std::shared_ptr<data::Transform> make_prompt_transform(const std::string& x_key,
                                                       const std::string& y_key,
                                                       const PromptOptions& options,
                                                       bool is_training) {
  return std::make_shared<PromptedSample>(x_key, y_key, options, is_training);
}

}  // namespace cytra::tasks
