#pragma once
// One target that a task learns: what an output of its model is compared with, and how.
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "config/registry.h"
#include "data/survey/check_targets.h"
#include "inference/decoders/decoder.h"
#include "inference/postprocess/postprocess.h"
#include "nn/loss.h"
#include "tasks/metric_set.h"
#include "training/mean_loss.h"
#include "training/task.h"

namespace cytra::data {
struct Sample;
}

namespace cytra::tasks {

constexpr int64_t kBatchesToFit = 64;
/// Calls look() with the first kBatchesToFit batches of a training, on the host, or all of them.
using EachBatch = std::function<void(const std::function<void(const data::Batch&)>& look)>;

/// Keys that every head takes, from which its Options are derived.
struct HeadOptions {
  std::string y_key = "seg";
  std::optional<std::string> mask_key;
  config::Node loss, metrics, decoder, postprocess;
  void visit(auto& v) {
    v("y_key", y_key, "the target's key in a sample");
    v("mask_key", mask_key, "key of a mask: where it is 0 the target does not count; null: none");
    v("loss", loss, "the loss that is minimised", config::component<nn::Loss>());
    v("metrics",
      metrics,
      "metrics of whole images in validation, each under a name; null: the usual ones",
      config::map_of<metrics::Metric>());
    v("decoder",
      decoder,
      "how outputs become results; null: as the head's other options say",
      config::optional_component<inference::Decoder>());
    v("postprocess",
      postprocess,
      "steps of `predict`, ahead of its own predict.postprocess",
      config::list_of<inference::Postprocess>());
  }
};

/// A target, a loss, metrics and a decoder for one output of a model. Registered, so that MultiTask
/// can have it beside others; a task of its own is OneHead of it (image_task.h).
class Head {
 public:
  static constexpr const char* kKind = "task head";
  /// `options`: with loss, metrics and decoder complete. `inputs`: of metrics that compared() is
  /// for, of predictions with `channels`. Throws: as MetricSet.
  Head(const HeadOptions& options,
       const std::vector<metrics::Metric::Input>& inputs,
       int64_t channels);
  virtual ~Head() = default;
  const std::string& y_key() const { return y_key_; }
  const std::optional<std::string>& mask_key() const { return mask_key_; }
  const inference::Decoder& decoder() const { return *decoder_; }

  /// Sets dimensions and channels of the model's output. Throws: ConfigError where others are due.
  virtual void fit(int64_t /*spatial_dims*/, int64_t /*channels*/) {}
  /// Makes and checks the sample's target, in a loader's thread. Throws: DataError naming its
  /// file.
  virtual void prepare(data::Sample& sample, const std::string& x_key) const = 0;
  /// Whether what the loss compares with takes the target's place in training samples, where
  /// metrics of whole images need the target itself.
  virtual bool has_loss_target() const { return false; }
  /// Then, of training samples alone, it is made.
  virtual void prepare_loss(data::Sample& /*sample*/) const {}
  /// Equal texts prepare alike.
  virtual std::string text() const = 0;
  /// What the target is taken for (Task::target_meanings()), with its key; the image's and the
  /// head's names are added. By default it is not checked.
  virtual std::optional<data::TargetMeaning> target_meaning() const { return {}; }
  /// Fits a decoder that was left open to the training's targets, before a training. Returns the
  /// `decoder` to be kept in the head's section of the configuration; null: as it is.
  virtual config::Node fit_decoder(const EachBatch& /*each*/) { return {}; }

  /// Task::check_batch() for this head.
  virtual void check_batch(const data::Batch& /*batch*/) {}
  /// The loss of a training batch. `levels`: the output and, with deep supervision, the coarser
  /// ones after it.
  at::Tensor loss(const std::vector<at::Tensor>& levels, const data::Batch& batch) const;
  /// Adds a batch of whole images to the metrics.
  virtual void update(const at::Tensor& output, const data::Batch& batch);
  /// "loss" (the mean over batches) and the metrics since the last call, which starts them afresh.
  virtual training::Metrics compute();
  /// Task::findings() of this head.
  virtual report::Findings findings() const;
  /// Task::sums() and gather() of this head.
  virtual std::vector<at::Tensor> sums();
  void gather(const std::function<at::Tensor(const at::Tensor& rows)>& of_all) {
    metrics_.gather(of_all);
  }
  /// "target" and "prediction" of a batch's first sample, (C,[D,]H,W), by the output for it;
  /// undefined: the target alone, also of training batches.
  virtual std::map<std::string, at::Tensor> preview(const at::Tensor& output,
                                                    const data::Batch& batch) const = 0;

 protected:
  /// The metrics so far, as compute() gives them.
  virtual training::Metrics values() const;
  /// Has findings() tell which class is taken for which, where so many can be read.
  void count_confusions(int64_t classes);
  /// What the loss compares with. Throws: ConfigError, DataError for outputs or targets that do not
  /// fit.
  virtual at::Tensor target(const at::Tensor& output, const data::Batch& batch) const = 0;
  /// The voxels that count, for losses that can't see this from the target; undefined: all.
  virtual at::Tensor mask(const data::Batch& /*batch*/) const { return {}; }
  /// Prediction, truth and mask in the form that metrics of that input take.
  virtual metrics::Compared compared(const at::Tensor& output,
                                     const data::Batch& batch,
                                     metrics::Metric::Input input) const = 0;

  const std::string y_key_;
  const std::optional<std::string> mask_key_;
  std::shared_ptr<inference::Decoder> decoder_;

 private:
  std::shared_ptr<nn::Loss> loss_;
  MetricSet metrics_;
  training::MeanLoss losses_;
};

/// The mask of a sample, of the image's size, (1,[D,]H,W). Throws: DataError.
at::Tensor mask_of(data::Sample& sample, const std::string& mask_key, const std::string& x_key);

/// Keeps the decoders of `before` where `task`, the configuration of a training that is continued,
/// leaves them open.
void keep_decoders(config::Node& task, const config::Node& before);

/// Sets options of a component, and of those of its kind in it, that are open (null, or not there),
/// to the value that `fitting` has for their name. With a `meaning` ("num_classes=3 means ..."),
/// other values are not the user's choice. Throws: ConfigError that says so.
void fit_options(config::Node& component,
                 const std::string& kind,
                 const std::map<std::string, config::Node>& fitting,
                 const std::string& meaning = "");

}  // namespace cytra::tasks
