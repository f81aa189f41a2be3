#pragma once
// Trainings from the labels of a datastore: MONAI Label's /train/.
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "app/serve/http/json_body.h"
#include "app/serve/labels/datastore.h"
#include "app/serve/models/repository.h"
#include "cli/mcp/job.h"

namespace cytra::app {

/// Runs `train`, one at a time, from a served checkpoint on the images that have final labels, with
/// the configuration of the checkpoint's own training. When it ends, its best checkpoint is served
/// in place of the one before. Thread: any.
class LabelTraining {
 public:
  /// `folder`: of the trainings' run folders. All must outlive this.
  LabelTraining(const ServeConfig& config,
                const Datastore& store,
                Repository& models,
                std::string folder);
  ~LabelTraining();  // as end()

  /// Starts a training; `settings`: keys of kTrainKeys, others are not read. Throws: HttpError
  /// (409) where one runs, (422) where there is nothing to train with, (400) for a wrong setting.
  Json start(const std::string& model, const Json& settings);
  /// The last training. Throws: HttpError (404) where there was none, or, with `must_run`, none
  /// runs.
  Json status(bool must_run) const;
  /// Ends it; it saves its state. Throws: HttpError (404) where none runs.
  Json stop();
  /// Ends a training that runs, which saves its state, and takes no more.
  void end();
  /// The keys of a training that a client may set.
  static Json keys();

 private:
  struct Task {
    std::string model, folder, program_config, state = "RUNNING", error;
    int64_t begin_s = 0, end_s = 0;
    int64_t images = 0;
    Json details = Json::array();  // the last messages
    Json progress;
    bool is_wanted = true;  // the thread has not taken it
    bool is_stopped = false;
  };
  void prepare(Task& task, const Json& settings) const;
  void run();
  void train(std::unique_lock<std::mutex>& lock);
  Json told() const;

  const ServeConfig& config_;
  const Datastore& store_;
  Repository& models_;
  const std::string folder_;
  mutable std::mutex mutex_;
  std::optional<Task> task_;  // guarded by mutex_, as is_ending_
  bool is_ending_ = false;
  std::condition_variable changed_;
  std::thread thread_;  // starts the programs, which end with it
};

}  // namespace cytra::app
