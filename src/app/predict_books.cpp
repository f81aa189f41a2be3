#include "app/predict_books.h"

#include <chrono>
#include <cstdlib>

#include "base/error.h"
#include "base/escape.h"
#include "base/log.h"
#include "base/signals.h"

namespace cytra::app {

void Books::leave_out(const std::string& id, const std::exception& error) {
  const std::lock_guard lock(mutex);
  const std::string what = error.what();
  const std::string text = what.find(id) == std::string::npos ? id + ": " + what : what;
  // The configuration has a line for each problem; a name of a file never has one.
  const bool has_lines = dynamic_cast<const ConfigError*>(&error) != nullptr;
  log::write(log::Level::error, has_lines ? text : escaped(text));
  results.add("failed", id);
  if (code == 0) code = exit_code(error);
}

EndOnSignal::EndOnSignal(std::mutex& writing, std::function<void(int signal)> end)
    : thread_([this, &writing, end = std::move(end)] { watch(writing, end); }) {}

EndOnSignal::~EndOnSignal() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void EndOnSignal::watch(std::mutex& writing, const std::function<void(int signal)>& end) {
  constexpr std::chrono::milliseconds kInterval(50);
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, kInterval, [this] { return is_over_; })) {
    const int signal = signal_received();
    if (signal == 0) continue;
    const std::lock_guard nothing_is_written(writing);
    end(signal);
    std::_Exit(signal_exit_code(signal));  // the other threads may be in the midst of anything
  }
}

}  // namespace cytra::app
