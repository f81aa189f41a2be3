#pragma once
// A model that many threads use at once, answered in batches. docs/serving.md
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "pipelines/batching/batching.h"

namespace cytra::pipelines {

/// Thread: any thread may call anything.
class BatchingService {
 public:
  /// images: (n,C,[D,]H,W), n at most max_batch_size, of one type, on one device -> (n,...).
  /// Called by one thread, the service's own, without gradients, on memory that it may change. It
  /// may call all functions of the service but warm_up(); stop() and drain() return at once there,
  /// and submit() does not wait for room.
  using Model = std::function<at::Tensor(const at::Tensor& images)>;

  /// Throws: ConfigError for options.
  explicit BatchingService(Model model, const BatchingOptions& options = {});
  ~BatchingService();  // stop()

  /// What was asked.
  class Request {
   public:
    /// (n,...). Images of one batch are parts of one tensor: clone() what is kept for long. It
    /// throws RequestError (timed_out, cancelled), or what the model has thrown.
    std::future<at::Tensor> answer;
    /// Answers at once with a RequestError, also while the model computes. False: too late.
    bool cancel();

   private:
    friend class BatchingService;
    struct State;
    std::weak_ptr<State> state_;
    BatchingService* service_ = nullptr;
  };
  /// input: (n,C,[D,]H,W), n >= 1, which is copied: the caller may change it at once. More images
  /// than a batch are computed in several, and the answer is put together again.
  /// Throws: DataError (dimensions, n), RequestError where there is no room, or no more is taken.
  Request submit(const at::Tensor& input, BatchTime deadline = kNoDeadline);

  /// Runs the model on batches of 1, 2, 4, ... max_batch_size zeros of that shape ([C,[D,]H,W]), so
  /// that no request meets a size for the first time, and measures them: batches of that shape have
  /// the best of these sizes from now on. Returns seconds by size. Throws: DataError for another
  /// shape; what the model throws;
  /// sizes that memory is too small for are left out.
  std::map<int64_t, double> warm_up(const std::vector<int64_t>& shape,
                                    const at::TensorOptions& type = at::kFloat);
  /// Images of a full batch of that shape.
  int64_t full_size(const std::vector<int64_t>& shape,
                    const at::TensorOptions& type = at::kFloat) const;

  /// Answers all requests that are there, and takes no more.
  void drain();
  /// Takes no more; requests that wait are cancelled, those that are computed are answered.
  void stop();
  BatchingFigures figures() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cytra::pipelines
