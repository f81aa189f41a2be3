#pragma once
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <utility>

namespace cytra {

/// Hands items from threads to threads, in order: a stage of a pipeline waits for the next one
/// instead of filling the memory. Bounded by number and by bytes; an item larger than all the bytes
/// passes alone.
template <class T>
class Queue {
 public:
  explicit Queue(std::size_t items, int64_t bytes = INT64_MAX) : items_(items), bytes_(bytes) {}

  /// Adds an item, waiting for room. Returns false where the queue is closed: the item is dropped.
  /// Throws: what fail() was given.
  bool push(T item, int64_t bytes = 0) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] {
      return is_closed_ || error_ || waiting_.empty() ||
             (waiting_.size() < items_ && held_ + bytes <= bytes_);
    });
    throw_error();
    if (is_closed_) return false;
    held_ += bytes;
    waiting_.push_back({std::move(item), bytes});
    changed_.notify_all();
    return true;
  }
  /// Adds an item without waiting: where there is no room, the oldest items are dropped.
  /// `inherit(dropped, next)` gets each of them, and the item that is the oldest then. Returns how
  /// many were dropped. Throws: what push() throws.
  int64_t push_over(T item, int64_t bytes, auto&& inherit) {
    const std::lock_guard lock(mutex_);
    throw_error();
    int64_t dropped = 0;
    for (; !waiting_.empty() && (waiting_.size() >= items_ || held_ + bytes > bytes_); ++dropped) {
      Waiting oldest = std::move(waiting_.front());
      waiting_.pop_front();
      held_ -= oldest.bytes;
      inherit(oldest.item, waiting_.empty() ? item : waiting_.front().item);
    }
    if (is_closed_) return dropped;
    held_ += bytes;
    waiting_.push_back({std::move(item), bytes});
    changed_.notify_all();
    return dropped;
  }
  /// Takes an item, waiting for it. None where the queue is closed and empty. Throws: what fail()
  /// was given, at once.
  std::optional<T> pop() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return is_closed_ || error_ || !waiting_.empty(); });
    throw_error();
    if (waiting_.empty()) return std::nullopt;
    Waiting first = std::move(waiting_.front());
    waiting_.pop_front();
    held_ -= first.bytes;
    changed_.notify_all();
    return std::move(first.item);
  }
  /// Closes the queue: no more items come.
  void close() {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
    changed_.notify_all();
  }
  /// Passes the error of one end to the other one. The first error counts.
  void fail(std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::move(error);
    changed_.notify_all();
  }

 private:
  struct Waiting {
    T item;
    int64_t bytes;
  };
  void throw_error() const {
    if (error_) std::rethrow_exception(error_);
  }
  const std::size_t items_;
  const int64_t bytes_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Waiting> waiting_;  // this and all below: guarded by mutex_
  int64_t held_ = 0;
  bool is_closed_ = false;
  std::exception_ptr error_;
};

}  // namespace cytra
