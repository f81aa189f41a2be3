#pragma once
// What the source files of Processes share.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <future>
#include <memory>
#include <mutex>
#include <thread>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "training/processes/process_store.h"

namespace cytra::training {

using std::chrono::milliseconds;

// Keys of the store.
constexpr const char *kStart = "start",  // what rank 0 sends
    *kSignal = "signal",                 // the number of a signal that somebody got
        *kEnd = "end";                   // the first failure: "<exit code> <message>"
constexpr milliseconds kTick{500},       // between two signs of life
    kSilence{3000},  // without one, a process that broke off, or is waited for by a signal, is lost
    kMostSilence{60000},  // ... one that nothing else is known of; process_timeout may be less
    kGrace{5000};         // for ending by itself after a failure elsewhere
constexpr std::size_t kMostStart = std::size_t{8} << 20, kMostText = 4000;  // bytes of a value

inline std::string name_of(int64_t rank) {
  return "name/" + std::to_string(rank);
}

/// Two threads keep the contact with other processes, however long the training thread is busy:
/// `talker` alone uses the store, in which it may hang; `watcher` never waits for anything, and
/// ends what hangs. Both may live longer than their Processes, if it gives them up.
struct Processes::Shared : std::enable_shared_from_this<Shared> {
  ProcessPlace place;
  milliseconds timeout;
  Hooks hooks;
  c10::intrusive_ptr<c10d::TCPStore> server;     // rank 0 keeps it alive
  c10::intrusive_ptr<c10d::ProcessGroup> group;  // on the device
  c10::intrusive_ptr<c10d::Backend> control;     // Gloo
  c10::Device device = c10::kCPU;
  std::string logs;
  std::atomic<int64_t> operations{0};
  std::atomic<int> signal{0};
  std::atomic<bool> is_ending{false}, is_first_gone{false};

  std::mutex mutex;
  std::condition_variable changed;
  // Guarded by `mutex`.
  bool is_done = false, is_connected = false;
  int threads = 0;
  std::deque<std::function<void(c10d::Store&)>> asked;  // of the talker
  std::string broken;                                   // why the talker ended, else ""
  int64_t rounds = 0;                                   // of the talker: sent and received
  std::vector<std::string> names, lives;  // by rank: "<tick> <operations>"; "" when not looked at
  std::string end;                        // "<exit code> <message>", once something failed
  std::function<void()> cut;              // breaks off what waits for others

  std::thread talker, watcher;

  void begin();
  /// Ends both threads; one that hangs is left behind.
  void stop();

  /// The answer of the talker's store. `is_heeding`: a signal or a failure ends the wait, too.
  /// Throws: IoError when the store is lost or silent for `most`; Interrupted; as `end` says.
  auto ask(auto what, milliseconds most, bool is_heeding = false) {
    using StoreCall =
        std::packaged_task<decltype(what(std::declval<c10d::Store&>()))(c10d::Store&)>;
    const auto call = std::make_shared<StoreCall>(std::move(what));
    auto answer = call->get_future();
    {
      const std::lock_guard lock(mutex);
      asked.emplace_back([call](c10d::Store& store) { (*call)(store); });
    }
    changed.notify_all();
    const auto begin = std::chrono::steady_clock::now();
    do {  // also where every answer comes at once
      if (is_heeding) heed();
      expect_store(std::chrono::steady_clock::now() - begin > most);
    } while (answer.wait_for(milliseconds(10)) != std::future_status::ready);
    return answer.get();
  }
  void heed();
  void expect_store(bool is_late);
  std::string store_name();

  /// Names of ranks with their machine and log, for a message.
  std::string describe(const std::vector<int64_t>& ranks);
  /// Reports to all why the training ends, unless it is ending already; does not wait.
  void end_with(const std::string& text);
  bool has_end();
  /// Waits until the requests so far are done, or the store is lost.
  void flush();
  /// Waits until all have sent their names.
  void await_all();
  /// Finds out why an operation failed. Throws.
  [[noreturn]] void explain(const std::string& what);

  void talk();
  void talk_once(c10d::Store& store, int64_t tick);
  void watch();
};

}  // namespace cytra::training
