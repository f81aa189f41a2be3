#include "tasks/whole_images/whole_image.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "data/loader/batch.h"
#include "data/sample/sample.h"
#include "nn/classifier.h"
#include "tasks/annotation_targets.h"

namespace cytra::tasks {
namespace {

HeadOptions without_metrics(HeadOptions options) {
  options.metrics = config::Node::make_map();
  return options;
}

}  // namespace

WholeImageHead::WholeImageHead(const HeadOptions& options, ImageTarget target)
    : Head(without_metrics(options), {}, target.count),
      target_(std::move(target)),
      metrics_(options.metrics, target_.inputs(), target_.count) {}

void WholeImageHead::fit(int64_t /*spatial_dims*/, int64_t channels) {
  if (channels == target_.count) return;
  throw ConfigError(
      "task.model: out_channels={}, expected {}: {}",
      channels,
      target_.count,
      target_.kind == ImageTarget::Kind::values ? "one for each of task.columns" : "num_classes");
}

void WholeImageHead::prepare(data::Sample& sample, const std::string& /*x_key*/) const {
  sample.tensors[y_key_] = at::tensor(target_.of(sample), at::kFloat);
}

std::string WholeImageHead::text() const {
  return fmt::format("{} {} {} {}",
                     y_key_,
                     target_.count,
                     fmt::join(target_.names, ","),
                     fmt::join(target_.columns, ","));
}

void WholeImageHead::update(const at::Tensor& output, const data::Batch& batch) {
  Head::update(output, batch);  // the loss
  metrics_.update([&](metrics::Metric::Input input) { return compared(output, batch, input); });
}

training::Metrics WholeImageHead::compute() {
  training::Metrics all = Head::compute();
  all.merge(with_class_names(metrics_.compute(), target_.names, 0));
  metrics_.reset();
  return all;
}

std::vector<at::Tensor> WholeImageHead::sums() {
  std::vector<at::Tensor> all = Head::sums();
  for (const at::Tensor& sum : metrics_.sums()) all.push_back(sum);
  return all;
}

void WholeImageHead::gather(const std::function<at::Tensor(const at::Tensor& rows)>& of_all) {
  metrics_.gather(of_all);
}

at::Tensor WholeImageHead::target(const at::Tensor& output, const data::Batch& batch) const {
  at::Tensor target = batch.at(y_key_);
  while (target.dim() < output.dim()) target = target.unsqueeze(-1);
  return target;
}

metrics::Compared WholeImageHead::compared(const at::Tensor& output,
                                           const data::Batch& batch,
                                           metrics::Metric::Input input) const {
  return target_.compared(
      decoder_->decode(output, target_.form()), WholeImageHead::target(output, batch), input);
}

void expect_no_voxels(const HeadOptions& options) {
  if (options.mask_key)
    throw ConfigError("mask_key: of a whole image nothing is left out, expected null");
  if (!options.postprocess.is_null() && !options.postprocess.list.empty())
    throw ConfigError("postprocess: steps change images, and this task gives none; expected null");
}

void expect_classifier(const nn::Model& model) {
  if (dynamic_cast<const nn::Classifier*>(&model) != nullptr) return;
  throw ConfigError(
      "task.model: a network that gives images, but this task is on whole images; expected "
      "model=image_classifier, which takes the encoder of one (model.backbone)");
}

}  // namespace cytra::tasks
