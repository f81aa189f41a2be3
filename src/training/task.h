#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/tensor_fwd.h"
#include "training/logger.h"

namespace cytra::data {
struct Batch;
struct TargetMeaning;
struct Transform;
}  // namespace cytra::data
namespace cytra::nn {
struct Model;
}

namespace cytra::training {

class MeanLoss;  // training/mean_loss.h

/// What is learned, not how the training runs: a model, a loss and metrics. Registered by class
/// name.
struct Task {
  static constexpr const char* kKind = "task";
  virtual ~Task() = default;
  virtual nn::Model& model() = 0;
  /// The key of its images in a sample; "": it has none.
  virtual std::string x_key() const { return {}; }
  /// The program that takes the trained model.
  virtual std::string program() const { return "predict"; }
  /// Whether that program scores its results where images have targets (data.with_target).
  virtual bool is_scored() const { return false; }
  /// What a loader does last with every sample, in its threads: the task's targets are made and
  /// checked there. Null: nothing.
  virtual std::shared_ptr<data::Transform> sample_transform() { return nullptr; }
  /// sample_transform() for the whole images of validation and test. By default they are the same.
  virtual std::shared_ptr<data::Transform> validation_transform() { return sample_transform(); }
  /// What it takes its targets for: check_targets() (data/survey/check_targets.h) looks at them
  /// before a training and in `--check-data`. By default none is looked at.
  virtual std::vector<data::TargetMeaning> target_meanings() const;
  /// Looks at a training batch, on the model's device, before its training_step(), and not while
  /// that is recorded. It must not wait for the device: what it finds may come with a later batch.
  /// Throws: DataError. By default nothing.
  virtual void check_batch(const data::Batch&) {}
  /// The loss of a batch, a scalar with its graph. The batch is on the model's device. On a GPU it
  /// may be called for the first steps alone, which are recorded (model.compile_model): it depends
  /// on the batch and the device's tensors, and on no number that the host changes.
  virtual Tensor training_step(const data::Batch& batch) = 0;
  /// Adds a batch of whole images to the metrics. Called without gradients, the model in eval mode.
  /// By default, the loss of training_step().
  virtual void validation_step(const data::Batch& batch);
  /// The metrics ("loss", "dice") since the last call, which starts them afresh. The trainer puts
  /// "val/" or "test/" before the names. By default, "loss": the mean over batches.
  virtual Metrics validation_end();
  /// What validation_step() counts, as tensors that several processes add up before
  /// validation_end(), so that metrics are exact for any distribution of the images. A task with
  /// its own validation_step() gives its own sums, or can't be trained by several processes.
  virtual std::vector<Tensor> sums();
  /// What is no sum, such as the order of all scores: lists that the processes join before
  /// validation_end(). `of_all` gives the rows (N,K), double, of all processes, by rank, for those
  /// of this one; all call it equally often.
  virtual void gather(const std::function<Tensor(const Tensor& rows)>& /*of_all*/) {}
  /// What a report shows of the validation so far, and leaves as it is: its metrics, as
  /// validation_end() will name them, and more. All of it follows from what sums() and gather()
  /// give, so that an image alone is told, too. By default nothing.
  virtual report::Findings findings();
  /// Images to look at for the first sample of a batch, e.g. "input", "target", "prediction":
  /// (C,[D,]H,W) float. Called without gradients, the model in eval mode.
  virtual std::map<std::string, Tensor> preview(const data::Batch&);
  /// Images of the first sample of a training batch, without a prediction: the model is not asked.
  /// By default the image of x_key() alone.
  virtual std::map<std::string, Tensor> preview_input(const data::Batch&);
  /// A word on that sample where its target is no image: "benign", with a prediction "benign,
  /// predicted malignant". By default none.
  virtual std::string caption(const data::Batch&, bool /*is_predicted*/) { return {}; }

 private:
  MeanLoss& losses();
  std::shared_ptr<MeanLoss> losses_;  // null: none yet
};

}  // namespace cytra::training
