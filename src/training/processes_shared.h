#pragma once
// What the parts of Processes share. For them alone.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "training/processes.h"

namespace cytra::training {

using StorePtr = c10::intrusive_ptr<c10d::Store>;

// Keys of the store.
constexpr const char *kStart = "start",  // what rank 0 sends
    *kSignal = "signal",                 // the number of a signal that somebody got
        *kEnd = "end";                   // the first failure: "<exit code> <message>"
constexpr auto kTick = std::chrono::milliseconds(500),  // between two signs of life
    kSilence = std::chrono::milliseconds(3000),         // without one a process counts as lost
    kGrace = std::chrono::milliseconds(5000);  // for ending by itself after a failure elsewhere

inline std::string text_of(const std::vector<uint8_t>& bytes) {
  return {bytes.begin(), bytes.end()};
}
inline std::string name_of(int64_t rank) {
  return "name/" + std::to_string(rank);
}

struct Processes::Shared {
  Place place;
  std::chrono::milliseconds timeout;
  c10::intrusive_ptr<c10d::TCPStore> server;     // rank 0 keeps it alive
  StorePtr store;                                // of the thread that trains
  c10::intrusive_ptr<c10d::ProcessGroup> group;  // on the device
  c10::intrusive_ptr<c10d::Backend> control;     // Gloo
  c10::Device device = c10::kCPU;
  std::string logs;
  std::function<std::string()> lost;
  std::atomic<int64_t> operations{0};
  std::atomic<int> signal{0};
  std::atomic<bool> is_ending{false}, is_first_gone{false};

  std::mutex mutex;
  std::condition_variable changed;
  bool is_done = false;
  std::thread life;

  ~Shared() { stop(); }
  void stop() {
    {
      const std::lock_guard lock(mutex);
      is_done = true;
    }
    changed.notify_all();
    if (life.joinable()) life.join();
  }
  StorePtr connect(bool is_server);
  /// Names of ranks with their machine and log, for a message.
  std::string describe(const std::vector<int64_t>& ranks);
  /// The first failure of all: what it says is what all processes say.
  static std::string end_with(c10d::Store& store, const std::string& text);
  /// Until all have told their names.
  void await_all();
  /// "<tick> <operations>" of every process; "" of one that never came.
  std::vector<std::string> lives();
  /// Finds out why an operation failed. Throws.
  [[noreturn]] void explain(const std::string& what);
  /// A thread of its own: this process's signs of life, and the news from others.
  void live();
};

}  // namespace cytra::training
