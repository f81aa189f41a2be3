#include "tasks/result_scores.h"

#include <ATen/ATen.h>

#include "config/schema.h"
#include "data/sample/same_grid.h"
#include "inference/decoders/decoder.h"
#include "tasks/annotation_targets.h"
#include "tasks/head.h"
#include "tasks/instances/labels.h"

namespace cytra::tasks {
namespace {

using Input = metrics::Metric::Input;

std::optional<ClassLabels> classes_in(const config::Node& task) {
  if (inference::decoder_of(task)->compares_as() != Input::masks) return std::nullopt;
  return class_labels_of(task);
}

MetricSet metrics_in(const config::Node& task,
                     const std::optional<ClassLabels>& labels,
                     int64_t channels) {
  const config::Node* own = task.find_direct("metrics");
  const config::Node given = own == nullptr ? config::Node() : *own;
  if (labels) {
    config::Node scored = config::Node::make_map();
    for (const auto& [name, metric] : labels->metrics(given).map) {
      const bool is_scored =
          metric.is_null() || make<metrics::Metric>(metric)->input() != Input::probabilities;
      if (is_scored) scored.set(name, metric);  // results are labels
    }
    return {scored, {Input::masks, Input::objects}, labels->num_classes};
  }
  return {given, {inference::decoder_of(task)->compares_as()}, channels};
}

}  // namespace

ResultScores::ResultScores(const config::Node& task, int64_t channels)
    : labels_(classes_in(task)),
      are_objects_(inference::decoder_of(task)->compares_as() == Input::objects),
      class_names_(task.get<std::vector<std::string>>("class_names", {})),
      metrics_(metrics_in(task, labels_, channels)) {
  if (const config::Node* key = task.find_direct("mask_key"); key != nullptr && !key->is_null())
    mask_key_ = key->as<std::string>();
  const config::Node* ignored = task.find_direct("ignore_index");
  if (!labels_ && ignored != nullptr && !ignored->is_null())
    ignored_object_ = ignored->as<int64_t>();
  if (labels_) counts_ = at::zeros({labels_->num_classes + 2}, at::TensorOptions(at::kDouble));
}

ResultScores::Target ResultScores::target_of(data::Sample& sample,
                                             const std::string& y_key,
                                             const std::string& x_key) const {
  data::expect_same_grid(sample, y_key, x_key);
  if (are_objects_) renumber_large_labels(sample, y_key, ignored_object_);
  Target target;
  target.values =
      (labels_ ? labels_->target_of(sample, y_key, x_key) : sample.at(y_key)).unsqueeze(0);
  if (mask_key_) target.mask = mask_of(sample, *mask_key_, x_key).ne(0).unsqueeze(0);
  if (labels_ && mask_key_) {
    target.values = target.values.masked_fill(target.mask.logical_not(),
                                              static_cast<double>(ClassLabels::kIgnored));
  }
  if (ignored_object_) {
    const at::Tensor known = target.values.ne(*ignored_object_);
    target.mask = target.mask.defined() ? target.mask.logical_and(known) : known;
    target.values = target.values * known;
  }
  return target;
}

void ResultScores::update(const at::Tensor& result,
                          const Target& target,
                          const io::Geometry& geometry) {
  const at::Tensor prediction = result.unsqueeze(0);
  if (labels_) counts_ += labels_->count(target.values);
  metrics_.update([&](Input input) {
    metrics::Compared made = labels_
                                 ? labels_->compared(prediction.to(at::kInt), target.values, input)
                                 : metrics::Compared{prediction, target.values, target.mask};
    made.spacing_um = {spacing_of(geometry, target.values.dim() - 2)};
    return made;
  });
}

std::map<std::string, double> ResultScores::compute() const {
  return with_class_names(metrics_.compute(), class_names_, labels_ ? first_class(*labels_) : 0);
}

std::vector<at::Tensor> ResultScores::sums() const {
  std::vector<at::Tensor> all = metrics_.sums();
  if (counts_.defined()) all.push_back(counts_);
  return all;
}

std::string ResultScores::what_is_missing() const {
  return labels_ ? labels_->what_is_missing(counts_) : "";
}

}  // namespace cytra::tasks
