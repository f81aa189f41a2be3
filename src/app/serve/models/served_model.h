#pragma once
// A model that predicts images of many requests: some threads read, one computes, some finish.
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "app/serve/http/http.h"
#include "app/serve/models/options.h"
#include "base/thread_pool.h"
#include "inference/outputs/result.h"
#include "pipelines/batching/batcher.h"

namespace cytra::app {

/// What a request wants of the model; what is empty is as the server's configuration says.
struct AskedResult {
  std::string head, form;
  std::optional<double> threshold;
};
/// The members `head` and `threshold` of an object. Throws: HttpError.
AskedResult asked_result_in(const Json& parameters);

/// A predictor with what its results need.
struct PreparedModel {
  inference::Predictor predictor;
  inference::ResultOptions options;
  std::string key;  // of the form and threshold: images of equal ones share batches
};

/// The work on a request. All functions are called by threads of the model, one after another.
class ImageWork {
 public:
  virtual ~ImageWork() = default;
  virtual std::shared_ptr<const inference::ModelInput> read(const PreparedModel& model) = 0;
  virtual inference::ImageResult::Outputs outputs(const PreparedModel& model) = 0;
  virtual HttpResponse respond(const inference::ImageResult& result) = 0;
  /// An error as the client may see it.
  virtual HttpError told(int status, std::string what) const { return {status, what}; }
};

class ServedModel {
 public:
  /// Throws: what load_subject() and predictors_of() throw; ConfigError for a model whose results
  /// are no images.
  ServedModel(std::string name, const ServeConfig& config, std::vector<std::string> paths);
  ~ServedModel();

  const std::string& name() const { return name_; }
  /// The names of its outputs; empty: it has a single one without a name.
  const std::vector<std::string>& heads() const { return heads_; }
  const inference::Predictor& predictor(const std::string& head = "") const;
  /// The forms that results may have, the usual one first.
  std::vector<std::string> forms(const std::string& head = "") const;
  /// Begins the work; the exchange is answered when it is done, whatever happens. Throws: HttpError
  /// for a result that the model can't give.
  void submit(const AskedResult& asked,
              std::unique_ptr<ImageWork> work,
              std::shared_ptr<HttpExchange> exchange);
  /// Makes, or finds, what an asked result needs. Throws: HttpError.
  std::shared_ptr<const PreparedModel> prepared(const AskedResult& asked);
  /// The requests that it has begun and not ended.
  int64_t requests() const { return open_; }
  pipelines::BatchingFigures figures() const { return batcher_->figures(); }

 private:
  class Job;
  void read(const std::shared_ptr<Job>& job);
  void compute(const pipelines::Batch& batch);
  void compute_together(const std::vector<std::shared_ptr<Job>>& jobs);

  const std::string name_, form_;
  const double threshold_;
  const config::Node postprocess_;
  std::vector<std::string> heads_;
  std::map<std::string, std::shared_ptr<const inference::Predictor>> predictors_;  // by head
  std::atomic<int64_t> open_{0}, begun_{0};                                        // requests
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const PreparedModel>> prepared_;  // guarded by mutex_
  std::unique_ptr<ThreadPool> readers_, finishers_;
  std::unique_ptr<pipelines::Batcher> batcher_;
};

}  // namespace cytra::app
