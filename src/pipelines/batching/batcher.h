#pragma once
// Requests of many threads, answered in batches by one. It uses no torch, so that ThreadSanitizer
// sees all of it (docs/serving.md).
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "pipelines/batching/batch_queue.h"

namespace cytra::pipelines {

/// Thread: any thread may call anything.
class Batcher {
 public:
  /// Computes a batch, in the batcher's own thread. An exception from it is the answer to its
  /// requests.
  using Run = std::function<void(const Batch& batch)>;
  Batcher(const BatchingOptions& options, Run run);
  ~Batcher();  // stop()

  /// Throws: RequestError where there is no room (rejected, or timed_out where it waits for some),
  /// or the batcher takes no more. The request then gets no other answer.
  void submit(const std::shared_ptr<BatchRequest>& request);
  /// Cancels a request. The answer of one that is being computed is dropped. False: it has ended.
  bool cancel(const std::shared_ptr<BatchRequest>& request);
  /// Runs `work` in the batcher's thread, between batches; returns when it is done. Throws: what
  /// it throws, and RequestError after close().
  void run_between(const std::function<void()>& work);
  void warm(const std::string& bucket, const std::map<int64_t, double>& seconds);
  int64_t full_size(const std::string& bucket) const;
  /// Answers all requests that are there, and takes no more. In the batcher's own thread, which
  /// would wait for itself, this and stop() return at once.
  void drain();
  /// Takes no more requests; those that wait are cancelled, those that are being computed are
  /// answered.
  void stop();

  void count_values(int64_t values, int64_t padded);
  BatchingFigures figures() const;

 private:
  using Lock = std::unique_lock<std::mutex>;
  using Requests = std::vector<std::shared_ptr<BatchRequest>>;
  struct Between {
    const std::function<void()>* work;
    std::exception_ptr error;
    bool is_done = false;
  };

  void work();
  void watch();
  void compute(Lock& lock, const Batch& batch);
  void run_work(Lock& lock);
  /// Ends a request; called with the lock held. False: another thread has ended it. Otherwise the
  /// caller informs the request, and then calls told().
  bool finish(const std::shared_ptr<BatchRequest>& request, Outcome outcome);
  void fail(Lock& lock, const Requests& requests, const RequestError& error);
  void reject(Outcome outcome, const std::string& why);
  void close();
  bool is_own_thread() const { return std::this_thread::get_id() == worker_.get_id(); }
  void join();

  const Run run_;
  const bool waits_for_room_;
  mutable std::mutex mutex_;
  // Signals of changes: work for the thread, room in the queue, a deadline, all requests answered.
  std::condition_variable work_, room_, deadline_, told_;
  BatchQueue queue_;  // guarded by mutex_, as all that follows
  BatchingFigures figures_;
  std::set<std::shared_ptr<BatchRequest>> open_;
  std::multimap<BatchTime, std::shared_ptr<BatchRequest>> deadlines_;  // of those
  std::vector<Between*> between_;
  int64_t waiting_for_room_ = 0, untold_ = 0;
  bool is_closed_ = false, ends_ = false;
  std::once_flag joined_;
  std::thread worker_, watcher_;
};

}  // namespace cytra::pipelines
