#pragma once
#include <memory>

#include <ATen/core/Tensor.h>

namespace cytra::nn {
struct Model;
}

namespace cytra::training {

class Processes;

/// Averages a model's gradients over the processes during backward(): in buckets of 25 MB, each of
/// which is sent as soon as its last gradient is known. Follows: DistributedDataParallel, by its
/// own c10d::Reducer; but the buckets are final from the first step on, so that a training that
/// was interrupted adds in the same order.
class GradientAverage {
 public:
  /// All processes start with rank 0's weights and buffers. `finds_unused`: parameters without a
  /// part in the loss are looked for in each step's graph, which takes time; else they are an
  /// error.
  GradientAverage(Processes& processes, const nn::Model& model, bool finds_unused);
  ~GradientAverage();
  /// Both are called around the last batch of a step; each process adds up the gradients of
  /// earlier batches by itself. after_backward() throws: ConfigError when a parameter had no part
  /// in the loss.
  void before_forward();
  void before_backward(const at::Tensor& loss);
  void after_backward();
  /// Sends rank 0's buffers (running means) to all; called before every forward pass.
  void share_buffers();

 private:
  struct Shared;
  std::unique_ptr<Shared> shared_;
};

/// Makes batch norms, while this lives (trainer.sync_batchnorm), take the mean and variance of the
/// batches of all processes (null: each process its own). All processes must then run the model at
/// the same time: in a step, but not where a callback of the first process runs it. Throws:
/// ConfigError for a batch norm that is not of Cytra's blocks.
class SyncedBatchNorms {
 public:
  SyncedBatchNorms(Processes* processes, nn::Model& model);
  ~SyncedBatchNorms();
  SyncedBatchNorms& operator=(SyncedBatchNorms&&) = delete;

 private:
  friend bool has_batch_norms(Processes& processes, nn::Model& model);
  nn::Model& model_;
  int64_t count_ = 0;
};
/// Whether there are batch norms. Reports when there are none, so that trainer.sync_batchnorm has
/// no effect. Throws: as above.
bool has_batch_norms(Processes& processes, nn::Model& model);

}  // namespace cytra::training
