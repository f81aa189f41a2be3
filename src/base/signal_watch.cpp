#include "base/signal_watch.h"

#include <atomic>
#include <chrono>
#include <cstdlib>

#include "base/files.h"
#include "base/log.h"
#include "base/open_temporaries.h"
#include "base/signals.h"

namespace cytra {
namespace {

constexpr std::chrono::milliseconds kInterval{50};
constexpr int kPatience = 18;  // intervals: 0.9 s

std::atomic<bool> is_starting{false};
std::mutex start_mutex, folder_mutex;
std::string start_folder;  // "": none
SignalWatch* start_watch = nullptr;

}  // namespace

SignalWatch::SignalWatch(std::function<void(int signal)> end, std::function<bool()> is_finishing)
    : end_(std::move(end)), is_finishing_(std::move(is_finishing)), thread_([this] { watch(); }) {}

SignalWatch::~SignalWatch() {
  stop();
}

void SignalWatch::stop() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void SignalWatch::watch() {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, kInterval, [this] { return is_over_; })) {
    const int signal = signal_received();
    if (signal == 0) continue;
    for (int waited = 0; is_finishing_ && is_finishing_() && waited < kPatience; ++waited)
      std::this_thread::sleep_for(kInterval);
    end_(signal);
    remove_open_temporaries();
    std::_Exit(signal_exit_code(signal));  // the other threads may be in the middle of anything
  }
}

void remove_at_the_end(const std::string& folder) {
  log::set_file("");  // the log may lie in that folder
  for (int tries = 0; tries < 3; ++tries) {
    remove_all_quietly(folder);
    std::this_thread::sleep_for(kInterval / 5);
    if (!path_exists(folder)) return;
  }
}

StartOfWork::StartOfWork(const std::string& what)
    : watch_([what](int) {
        const std::lock_guard lock(folder_mutex);
        log::warn("interrupted before {}{}", what, start_folder.empty() ? "" : "; nothing is kept");
        if (!start_folder.empty()) remove_at_the_end(start_folder);
      }) {
  const std::lock_guard lock(start_mutex);
  start_watch = &watch_;
  is_starting = true;
}

StartOfWork::~StartOfWork() {
  start_is_over();
}

std::string make_with_start(const std::function<std::string()>& make) {
  const std::lock_guard lock(folder_mutex);
  return start_folder = make();
}

void start_is_over() {
  if (!is_starting) return;
  const std::lock_guard lock(start_mutex);
  // A signal that came before ends the program, whichever thread saw it first.
  while (start_watch != nullptr && signal_received() != 0) std::this_thread::sleep_for(kInterval);
  if (start_watch != nullptr) start_watch->stop();
  start_watch = nullptr;
  is_starting = false;
  const std::lock_guard folder_lock(folder_mutex);
  start_folder.clear();
}

}  // namespace cytra
