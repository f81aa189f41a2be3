#include "app/predict_books.h"

#include <chrono>
#include <cstdlib>

#include "base/error.h"
#include "base/escape.h"
#include "base/log.h"
#include "base/open_temporaries.h"
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

EndOnSignal::EndOnSignal(Books& books, std::function<void(int signal)> end)
    : thread_([this, &books, end = std::move(end)] { watch(books, end); }) {}

EndOnSignal::~EndOnSignal() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void EndOnSignal::watch(Books& books, const std::function<void(int signal)>& end) {
  constexpr std::chrono::milliseconds kInterval(50);
  constexpr int kPatience = 18;  // intervals: 0.9 s
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, kInterval, [this] { return is_over_; })) {
    const int signal = signal_received();
    if (signal == 0) continue;
    for (int waited = 0; books.is_finishing && waited < kPatience; ++waited)
      std::this_thread::sleep_for(kInterval);
    const std::lock_guard books_are_closed(books.mutex);
    end(signal);
    remove_open_temporaries();
    std::_Exit(signal_exit_code(signal));  // the other threads may be in the midst of anything
  }
}

}  // namespace cytra::app
