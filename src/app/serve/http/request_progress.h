#pragma once
// GET /progress/{request_id}: how far a request under way is.
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace cytra::app {

class ProgressBoard;

/// The windows of a request's images that the model has seen. Each image counts as many as the
/// first one that is computed. Thread: any.
class RequestProgress {
 public:
  RequestProgress(ProgressBoard& board, std::string id) : board_(board), id_(std::move(id)) {}
  /// The number of images, 1 unless this says otherwise before the first add().
  void expect(int64_t images);
  /// Counts windows of an image: `done` of `total`. `counted`: what it has counted for that image,
  /// 0 at first; an image that is computed again counts from there on.
  void add(int64_t& counted, int64_t done, int64_t total);
  struct Windows {
    int64_t done = 0, total = 0;  // total 0: not known yet
  };
  Windows windows() const;
  /// The request has ended, and its id is forgotten.
  void end();

 private:
  ProgressBoard& board_;
  const std::string id_;
  mutable std::mutex mutex_;
  int64_t images_ = 1, per_image_ = 0, done_ = 0;  // guarded by mutex_
};

/// The requests under way whose clients gave them an id. Thread: any.
class ProgressBoard {
 public:
  /// Throws: HttpError, 400 for what is no id, 409 for that of a request under way.
  std::shared_ptr<RequestProgress> add(const std::string& id);
  /// Throws: HttpError, 400 for what is no id, 404 where no request under way has it.
  RequestProgress::Windows find(const std::string& id) const;
  void remove(const std::string& id);

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const RequestProgress>> requests_;  // guarded by mutex_
};

}  // namespace cytra::app
