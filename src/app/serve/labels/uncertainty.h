#pragma once
// Which image the model knows least about: MONAI Label's strategy `uncertainty`.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "app/serve/http/request_folders.h"
#include "app/serve/labels/datastore.h"
#include "app/serve/models/repository.h"

namespace cytra::app {

/// Scores the images of a datastore that have no final label: the mean entropy of the model's
/// probabilities over the image's voxels. A thread does so in the background from the first
/// question on, one image at a time, and again for a model that was loaded anew. Thread: any.
class Uncertainty {
 public:
  /// All must outlive this.
  Uncertainty(const Datastore& store, const Repository& models, RequestFolders& folders);
  ~Uncertainty();

  /// Answers with the image of the highest score, when all are scored; after `kPatience` of those
  /// that are. Throws: HttpError (404) for an unknown model, (422) for one without probabilities.
  void ask(const std::string& model, const std::shared_ptr<HttpExchange>& exchange);

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kPatience{20};
  struct Question {
    std::shared_ptr<HttpExchange> exchange;
    Clock::time_point until;
  };
  struct Score {
    std::string stamp;  // of the image's file
    double value = -1;  // < 0: it can't be predicted
  };
  struct Scores {
    std::weak_ptr<ServedModel> model;  // that made them
    std::map<std::string, Score> of;   // by the images' names
    std::deque<Question> questions;
  };
  bool work(const std::string& name);
  bool attempt(const std::string& name);
  void answer(Scores& scores) const;
  void run();

  const Datastore& store_;
  const Repository& models_;
  RequestFolders& folders_;
  std::mutex mutex_;
  std::map<std::string, Scores> scores_;  // by model; guarded by mutex_
  std::atomic<bool> is_stopping_{false};
  std::condition_variable changed_;
  std::thread thread_;
};

}  // namespace cytra::app
