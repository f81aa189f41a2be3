#include "pipelines/batching/batcher.h"

#include <stdexcept>

namespace cytra::pipelines {
namespace {

double batcher_seconds(BatchClock::duration time) {
  return std::chrono::duration<double>(time).count();
}

void wait_until(std::condition_variable& changed,
                std::unique_lock<std::mutex>& lock,
                BatchTime time) {
  if (time == kNoDeadline) {
    changed.wait(lock);
  } else {
    changed.wait_until(lock, time);
  }
}

}  // namespace

Batcher::Batcher(const BatchingOptions& options, Run run)
    : run_(std::move(run)), waits_for_room_(options.waits_for_room), queue_(options) {
  options.check();
  worker_ = std::thread([this] { work(); });
  watcher_ = std::thread([this] { watch(); });
}

Batcher::~Batcher() {
  stop();
}

void Batcher::reject(Outcome outcome, const std::string& why) {
  figures_.outcomes[outcome] += 1;
  throw RequestError(outcome, why);
}

void Batcher::submit(const std::shared_ptr<BatchRequest>& request) {
  Lock lock(mutex_);
  figures_.received += 1;
  const BatchTime arrival = BatchClock::now();
  BatchTime now = arrival;
  while (true) {
    if (is_closed_) reject(Outcome::rejected, "the service takes no more requests");
    if (request->deadline <= now)
      reject(Outcome::timed_out, "the request's deadline has passed before there was room");
    const std::string why = queue_.what_is_full(*request);
    if (why.empty()) break;
    if (!waits_for_room_ || is_own_thread() || queue_.is_too_large(*request))
      reject(Outcome::rejected, why);
    waiting_for_room_ += 1;
    wait_until(room_, lock, request->deadline);
    waiting_for_room_ -= 1;
    now = BatchClock::now();
  }
  queue_.add(request, now);
  request->arrival = arrival;
  open_.insert(request);
  if (request->deadline != kNoDeadline) {
    const auto place = deadlines_.emplace(request->deadline, request);
    if (place == deadlines_.begin()) deadline_.notify_one();
  }
  work_.notify_one();
}

bool Batcher::finish(const std::shared_ptr<BatchRequest>& request, Outcome outcome) {
  if (request->is_finished) return false;
  request->is_finished = true;
  figures_.outcomes[outcome] += 1;
  if (outcome == Outcome::ok)
    figures_.total_s.add(batcher_seconds(BatchClock::now() - request->arrival));
  if (request->is_waiting) {
    queue_.remove(*request);
    room_.notify_all();
  }
  const auto [begin, end] = deadlines_.equal_range(request->deadline);
  for (auto own = begin; own != end; ++own) {
    if (own->second != request) continue;
    deadlines_.erase(own);
    break;
  }
  open_.erase(request);
  untold_ += 1;
  return true;
}

void Batcher::fail(Lock& lock, const Requests& requests, const RequestError& error) {
  lock.unlock();
  for (const auto& request : requests) request->fail(std::make_exception_ptr(error));
  lock.lock();
  untold_ -= std::ssize(requests);
  told_.notify_all();
}

bool Batcher::cancel(const std::shared_ptr<BatchRequest>& request) {
  Lock lock(mutex_);
  if (open_.count(request) == 0 || !finish(request, Outcome::cancelled)) return false;
  fail(lock, {request}, RequestError(Outcome::cancelled, "the request was cancelled"));
  return true;
}

/// Answers requests at their deadline, also while the model computes.
void Batcher::watch() {
  Lock lock(mutex_);
  while (!ends_) {
    const BatchTime now = BatchClock::now();
    Requests late;
    while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
      late.push_back(deadlines_.begin()->second);
      finish(late.back(), Outcome::timed_out);
    }
    if (!late.empty()) {
      fail(lock, late, RequestError(Outcome::timed_out, "the request's deadline has passed"));
      continue;
    }
    wait_until(deadline_, lock, deadlines_.empty() ? kNoDeadline : deadlines_.begin()->first);
  }
}

void Batcher::work() {
  Lock lock(mutex_);
  while (true) {
    if (!between_.empty()) {
      run_work(lock);
      continue;
    }
    const BatchQueue::Next next = queue_.next(BatchClock::now(), !is_closed_);
    if (next.batch) {
      room_.notify_all();
      compute(lock, *next.batch);
    } else if (is_closed_) {
      return;
    } else {
      wait_until(work_, lock, next.wake);
    }
  }
}

void Batcher::compute(Lock& lock, const Batch& batch) {
  const BatchTime begin = BatchClock::now();
  for (const BatchSlice& slice : batch.slices) {
    if (slice.begin == 0) figures_.queue_s.add(batcher_seconds(begin - slice.request->arrival));
  }
  lock.unlock();
  std::exception_ptr error;
  try {
    run_(batch);
  } catch (...) {
    error = std::current_exception();
  }
  const double seconds = batcher_seconds(BatchClock::now() - begin);
  lock.lock();
  figures_.batches[batch.images] += 1;
  figures_.compute_s.add(seconds);
  if (!error) queue_.record(batch.bucket, batch.images, seconds);
  Requests ended;
  for (const BatchSlice& slice : batch.slices) {
    BatchRequest& request = *slice.request;
    request.computed += slice.count;
    if (!error && request.computed < request.images) continue;
    if (finish(slice.request, error ? Outcome::failed : Outcome::ok))
      ended.push_back(slice.request);
  }
  lock.unlock();
  for (const auto& request : ended) {
    if (error) {
      request->fail(error);
    } else {
      request->succeed();
    }
  }
  lock.lock();
  untold_ -= std::ssize(ended);
  told_.notify_all();
}

void Batcher::run_between(const std::function<void()>& work) {
  if (is_own_thread())
    throw std::logic_error("warm_up() of a BatchingService within its own model");
  Between between{&work, nullptr};
  Lock lock(mutex_);
  if (is_closed_) throw RequestError(Outcome::rejected, "the service takes no more requests");
  between_.push_back(&between);
  work_.notify_one();
  told_.wait(lock, [&] { return between.is_done; });
  if (between.error) std::rethrow_exception(between.error);
}

void Batcher::run_work(Lock& lock) {
  Between& between = *between_.front();
  lock.unlock();
  try {
    (*between.work)();
  } catch (...) {
    between.error = std::current_exception();
  }
  lock.lock();
  between_.erase(between_.begin());
  between.is_done = true;
  told_.notify_all();
}

void Batcher::warm(const std::string& bucket, const std::map<int64_t, double>& seconds) {
  const std::lock_guard lock(mutex_);
  queue_.warm(bucket, seconds);
}

int64_t Batcher::full_size(const std::string& bucket) const {
  const std::lock_guard lock(mutex_);
  return queue_.full_size(bucket);
}

void Batcher::count_values(int64_t values, int64_t padded) {
  const std::lock_guard lock(mutex_);
  figures_.values += values;
  figures_.padded_values += padded;
}

BatchingFigures Batcher::figures() const {
  const std::lock_guard lock(mutex_);
  BatchingFigures figures = figures_;
  figures.open = std::ssize(open_) + waiting_for_room_;
  return figures;
}

void Batcher::join() {
  std::call_once(joined_, [&] {
    worker_.join();
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
      deadline_.notify_all();
    }
    watcher_.join();
  });
}

void Batcher::close() {
  is_closed_ = true;
  work_.notify_all();
  room_.notify_all();
}

void Batcher::drain() {
  {
    Lock lock(mutex_);
    close();
    if (is_own_thread()) return;
    told_.wait(lock, [&] { return open_.empty() && untold_ == 0; });
  }
  join();
}

void Batcher::stop() {
  {
    Lock lock(mutex_);
    close();
    Requests waiting;
    for (const auto& request : open_) {
      if (request->is_waiting && request->taken == 0) waiting.push_back(request);
    }
    for (const auto& request : waiting) finish(request, Outcome::cancelled);
    if (!waiting.empty())
      fail(lock, waiting, RequestError(Outcome::cancelled, "the service was stopped"));
    if (is_own_thread()) return;
    told_.wait(lock, [&] { return open_.empty() && untold_ == 0; });
  }
  join();
}

}  // namespace cytra::pipelines
