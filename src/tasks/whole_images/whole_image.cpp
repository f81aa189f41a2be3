#include "tasks/whole_images/whole_image.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "data/sample/sample.h"
#include "nn/classifier.h"
#include "report/findings.h"
#include "tasks/annotation_targets.h"

namespace cytra::tasks {

WholeImageHead::WholeImageHead(const HeadOptions& options, ImageTarget target)
    : Head(options, target.inputs(), target.count),
      target_(std::move(target)),
      results_(at::zeros({2, target_.count}, at::TensorOptions(at::kDouble))),
      images_(at::zeros({1}, at::TensorOptions(at::kDouble))) {
  if (target_.kind == ImageTarget::Kind::classes) count_confusions(target_.count);
}

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
  Head::update(output, batch);
  const metrics::Compared made = compared(output, batch, metrics::Metric::Input::values);
  const auto summed = [](const at::Tensor& values) {
    return values.flatten(1).sum(0, false, at::kDouble);
  };
  const at::Tensor both = at::stack({summed(made.prediction), summed(made.truth)});
  results_ = results_.to(both.device()) + both;
  images_ += output.size(0);
}

training::Metrics WholeImageHead::values() const {
  return with_class_names(Head::values(), target_.names, 0);
}

training::Metrics WholeImageHead::compute() {
  const training::Metrics all = Head::compute();
  results_ = at::zeros_like(results_);
  images_ = at::zeros_like(images_);
  return all;
}

report::Findings WholeImageHead::findings() const {
  report::Findings found = Head::findings();
  for (std::size_t k = 0; k < found.classes.size(); ++k)
    found.classes[k] = target_.name_of(static_cast<int64_t>(k));
  for (std::size_t k = 0; k < found.precision_recall.size(); ++k)
    found.precision_recall[k].first = target_.name_of(static_cast<int64_t>(k));
  if (target_.kind == ImageTarget::Kind::classes && found.precision_recall.size() == 2)
    found.precision_recall.erase(found.precision_recall.begin());  // mirrors the other
  if (images_.item<double>() == 1) {
    found.all.predicted = target_.text_of(results_[0]);
    found.all.truth = target_.text_of(results_[1]);
  }
  return found;
}

std::string WholeImageHead::caption(const at::Tensor& output, const data::Batch& batch) const {
  const at::Tensor truth = target_.one_hot(batch.at(y_key_).slice(0, 0, 1));
  const std::string is = target_.text_of(truth.flatten());
  if (!output.defined()) return is;
  return is + ", predicted " + target_.text_of(decoder_->decode(output, target_.form()).flatten());
}

std::vector<at::Tensor> WholeImageHead::sums() {
  std::vector<at::Tensor> all = Head::sums();
  all.insert(all.end(), {results_, images_});
  return all;
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
