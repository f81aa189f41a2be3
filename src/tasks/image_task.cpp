#include "tasks/image_task.h"

#include <algorithm>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/lists.h"
#include "data/loader/batch.h"
#include "data/sample/sample.h"
#include "inference/models/trained_head.h"
#include "report/findings.h"

namespace cytra::tasks {
namespace {

/// The last transform of every sample: makes its targets. Errors in them are found here, in a
/// loader's thread, where the file is known, before a GPU gets them.
class Prepared final : public data::Transform {
 public:
  Prepared(std::string x_key,
           int64_t in_channels,
           const std::vector<ImageTask::WeightedHead>& heads,
           bool is_training)
      : x_key_(std::move(x_key)), in_channels_(in_channels), is_training_(is_training) {
    name = "Task";
    text = fmt::format("{} {} {}", name, x_key_, in_channels);
    for (const ImageTask::WeightedHead& one : heads) {
      heads_.push_back(one.head);
      text += "; " + one.head->text();
      if (is_training && one.head->has_loss_target()) text += " of the loss";
    }
  }
  void apply(data::Sample& sample, Rng& /*rng*/) const override {
    data::expect_channels(sample, x_key_, in_channels_);
    for (const auto& head : heads_) {
      head->prepare(sample, x_key_);
      if (is_training_) head->prepare_loss(sample);
    }
  }

 private:
  std::string x_key_;
  int64_t in_channels_;
  bool is_training_;
  std::vector<std::shared_ptr<Head>> heads_;
};

std::size_t output_of(const std::string& head, const std::vector<std::string>& names) {
  if (head.empty()) return 0;
  const auto found = std::ranges::find(names, head);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  throw ConfigError("task.heads.{}: the model has {}{}",
                    head,
                    names.empty() ? "one output without a name"
                                  : fmt::format("the heads {}", fmt::join(names, ", ")),
                    suggestion(head, names));
}

/// Each head makes a target of its own in a sample. Throws: ConfigError.
void expect_own_target(const ImageTask::WeightedHead& one, const ImageTask::WeightedHead& other) {
  const Head &own = *one.head, &from = *other.head;
  const bool is_shared = own.y_key() == from.y_key();
  if (&own == &from) return;
  if (!is_shared && (own.mask_key() != from.y_key() || !from.has_loss_target())) return;
  throw ConfigError(
      "task.heads.{}: {}={} is the target of the head {}, too, which makes one of its own of it; "
      "expected a key of this head's own (CopyItemsd copies)",
      one.name,
      is_shared ? "y_key" : "mask_key",
      from.y_key(),
      other.name);
}

}  // namespace

ImageTask::ImageTask(const ImageTaskOptions& options, std::vector<WeightedHead> heads)
    : x_key_(options.x_key),
      windows_(options.inference_args),
      model_(make<nn::Model>(options.model)),
      heads_(std::move(heads)) {
  for (const WeightedHead& one : heads_)
    for (const WeightedHead& other : heads_) expect_own_target(one, other);
  for (const WeightedHead& one : heads_) {
    outputs_.push_back(output_of(one.name, model_->output_names()));
    if (!one.head->decoder().grid().empty()) windows_.unit = model_->divisor();
    const config::Node channels = inference::head_channels(options.model, one.name);
    one.head->fit(
        model_->spatial_dims(),
        one.name.empty() || channels.is_null() ? model_->out_channels() : channels.as<int64_t>());
  }
}

std::shared_ptr<data::Transform> ImageTask::sample_transform() {
  return std::make_shared<Prepared>(x_key_, model_->in_channels(), heads_, /*is_training=*/true);
}

std::shared_ptr<data::Transform> ImageTask::validation_transform() {
  return std::make_shared<Prepared>(x_key_, model_->in_channels(), heads_, /*is_training=*/false);
}

bool ImageTask::is_scored() const {
  const std::vector<data::TargetMeaning> targets = target_meanings();
  return targets.size() == 1 && targets[0].head.empty() &&
         targets[0].kind != data::TargetMeaning::Kind::values;
}

std::vector<data::TargetMeaning> ImageTask::target_meanings() const {
  std::vector<data::TargetMeaning> meanings;
  for (const WeightedHead& one : heads_) {
    std::optional<data::TargetMeaning> meaning = one.head->target_meaning();
    if (!meaning) continue;
    meaning->image_key = x_key_;
    meaning->head = one.name;
    meanings.push_back(std::move(*meaning));
  }
  return meanings;
}

std::map<std::string, config::Node> ImageTask::fit_decoders(const EachBatch& each) {
  std::map<std::string, config::Node> decoders;
  for (const WeightedHead& one : heads_) {
    config::Node decoder = one.head->fit_decoder(each);
    if (!decoder.is_null()) decoders[one.name] = std::move(decoder);
  }
  return decoders;
}

void ImageTask::check_batch(const data::Batch& batch) {
  for (const WeightedHead& one : heads_) one.head->check_batch(batch);
}

at::Tensor ImageTask::training_step(const data::Batch& batch) {
  const std::vector<at::Tensor> made = model_->all(batch.at(x_key_));
  if (heads_.front().name.empty()) return heads_.front().head->loss(made, batch);
  at::Tensor sum;
  for (std::size_t h = 0; h < heads_.size(); ++h) {
    const at::Tensor loss = heads_[h].weight * heads_[h].head->loss({made.at(outputs_[h])}, batch);
    sum = sum.defined() ? sum + loss : loss;
  }
  return sum;
}

std::vector<at::Tensor> ImageTask::predict(const at::Tensor& images) {
  const inference::Forward forward = [this](const at::Tensor& windows) {
    return model_->all(windows);
  };
  const std::vector<at::Tensor> made = inference::sliding_window(images, forward, windows_);
  return mapped(outputs_, [&](std::size_t output) { return made.at(output); });
}

void ImageTask::validation_step(const data::Batch& batch) {
  const std::vector<at::Tensor> outputs = predict(batch.at(x_key_));
  for (std::size_t h = 0; h < heads_.size(); ++h) heads_[h].head->update(outputs[h], batch);
}

training::Metrics ImageTask::joined(const std::vector<training::Metrics>& of_heads) const {
  if (heads_.front().name.empty()) return of_heads.front();
  training::Metrics all{{"loss", 0}};
  for (std::size_t h = 0; h < heads_.size(); ++h) {
    for (const auto& [name, value] : of_heads[h]) {
      all[name + "/" + heads_[h].name] = value;
      if (name == "loss") all["loss"] += heads_[h].weight * value;
    }
  }
  return all;
}

training::Metrics ImageTask::validation_end() {
  return joined(mapped(heads_, [](const WeightedHead& one) { return one.head->compute(); }));
}

report::Findings ImageTask::findings() {
  report::Findings found;
  std::vector<training::Metrics> of_heads;
  for (const WeightedHead& one : heads_) {
    const report::Findings own = one.head->findings();
    of_heads.push_back(own.all.metrics);
    if (found.confusion.empty() && found.precision_recall.empty()) found = own;
  }
  found.all.metrics = joined(of_heads);
  return found;
}

std::vector<at::Tensor> ImageTask::sums() {
  std::vector<at::Tensor> all;
  for (const WeightedHead& one : heads_) {
    const std::vector<at::Tensor> own = one.head->sums();
    all.insert(all.end(), own.begin(), own.end());
  }
  return all;
}

std::map<std::string, at::Tensor> ImageTask::preview(const data::Batch& batch) {
  const at::Tensor image = batch.at(x_key_).slice(0, 0, 1);
  return shown(batch, predict(image));
}

std::map<std::string, at::Tensor> ImageTask::preview_input(const data::Batch& batch) {
  return shown(batch, std::vector<at::Tensor>(heads_.size()));
}

std::map<std::string, at::Tensor> ImageTask::shown(const data::Batch& batch,
                                                   const std::vector<at::Tensor>& outputs) const {
  std::map<std::string, at::Tensor> images{{"input", batch.at(x_key_)[0]}};
  for (std::size_t h = 0; h < heads_.size(); ++h) {
    for (const auto& [name, image] : heads_[h].head->preview(outputs[h], batch))
      images[heads_[h].name.empty() ? name : heads_[h].name + " " + name] = image;
  }
  return images;
}

}  // namespace cytra::tasks
