#include "pipelines/job/tally.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/escape.h"
#include "base/log.h"
#include "device/error.h"

namespace cytra::pipelines {

void Tally::leave_out(const std::string& id, const std::exception& error) {
  const std::lock_guard lock(mutex);
  const std::string what = error.what();
  const std::string text = what.find(id) == std::string::npos ? id + ": " + what : what;
  // Errors of the configuration have a line for each problem; others have one line, whatever a
  // file's name contains.
  const bool has_lines = dynamic_cast<const ConfigError*>(&error) != nullptr;
  log::write(log::Level::error, has_lines ? text : escaped(text));
  results.add_item("failed", id);
  if (code == 0) code = exit_code(error);
}

int Tally::attempt(const std::string& id,
                   Phase phase,
                   bool ends_on_error,
                   const std::function<void()>& work) {
  try {
    device::guarded(work);
    return 0;
  } catch (const std::exception& error) {
    const bool is_io = dynamic_cast<const IoError*>(&error) != nullptr;
    const bool is_config = dynamic_cast<const ConfigError*>(&error) != nullptr;
    bool is_first = false;
    {
      const std::lock_guard lock(mutex);
      is_first = done == 0;
    }
    const bool is_of_all = is_config && (phase == Phase::writing || is_first);
    if (ends_on_error || (phase != Phase::reading && is_io) || is_of_all) throw;
    leave_out(id, error);
    return exit_code(error);
  }
}

std::function<void(const std::string& id, const std::exception& error)> Tally::leaving_out() {
  return [this](const std::string& id, const std::exception& error) {
    leave_out(id, error);
    ++images;
  };
}

void Tally::conclude(const std::string& folder,
                     const std::string& what,
                     int signal,
                     const std::string& hint) {
  if (!folder.empty()) results.add("output_dir", folder);
  log::write(signal == 0 ? log::Level::info : log::Level::warn,
             fmt::format("{}{} of {} images {}{}",
                         signal == 0 ? "" : "interrupted" + hint + ": ",
                         done,
                         images,
                         what,
                         resumed == 0 ? "" : fmt::format(", {} of them before", resumed)));
  results.print();
}

namespace {

/// The start is over when this is made.
std::function<void(int signal)> with_tally_closed(Tally& tally,
                                                  std::function<void(int signal)> end) {
  start_is_over();
  return [&tally, end = std::move(end)](int signal) {
    tally.mutex.lock();  // for good: nothing is counted any more
    end(signal);
  };
}

}  // namespace

EndOnSignal::EndOnSignal(Tally& tally, std::function<void(int signal)> end)
    : watch_(with_tally_closed(tally, std::move(end)), [&tally] { return tally.finishing > 0; }) {}

}  // namespace cytra::pipelines
