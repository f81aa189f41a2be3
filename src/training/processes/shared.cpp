// The part of Processes that knows which processes are alive, and reports what happened to the
// others.
#include "training/processes/shared.h"

#include <algorithm>

#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/log.h"
#include "base/signals.h"
#include "base/strings.h"

namespace cytra::training {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMostLife = 64, kMostName = 400;

std::string life_of(int64_t rank) {
  return fmt::format("life/{}", rank);
}

/// "<exit code> <message>": those that a program may end with.
bool is_end(const std::string& text) {
  const int code = std::atoi(text.c_str());
  const bool is_known = code == 1 || code == 2 || (code >= 4 && code <= 6) ||
                        std::ranges::any_of(kEndSignals, [&](int signal) {
                          return code == signal_exit_code(signal);
                        });
  return is_known && text.starts_with(std::to_string(code) + " ");
}

/// Throws the error that ended another process, so that this one has the same exit code.
[[noreturn]] void throw_end(const std::string& end) {
  const int code = std::atoi(end.c_str());
  const std::string message = end.substr(end.find(' ') + 1);
  switch (code) {
    case 1:
      throw std::runtime_error(message);
    case 2:
      throw DataError(message);
    case 4:
      throw IoError(message);
    case 5:
      throw MemoryError(message);
    case 6:
      throw DivergedError(message);
    default:
      throw Interrupted(message, code);
  }
}

std::vector<std::string> lives_of(c10d::Store& store, int64_t first, int64_t end) {
  std::vector<std::string> all;
  for (int64_t rank = first; rank < end; ++rank)
    all.push_back(read(store, life_of(rank), kMostLife).value_or(""));
  return all;
}

}  // namespace

void Processes::Shared::begin() {
  names.resize(static_cast<std::size_t>(place.size));
  lives.resize(names.size());
  threads = 2;
  const auto start = [own = shared_from_this()](void (Shared::*work)()) {
    return std::thread([own, work] {
      ((*own).*work)();
      const std::lock_guard lock(own->mutex);
      --own->threads;
      own->changed.notify_all();
    });
  };
  talker = start(&Shared::talk);
  watcher = start(&Shared::watch);
}

void Processes::Shared::stop() {
  std::unique_lock lock(mutex);
  is_done = true;
  changed.notify_all();
  changed.wait_for(lock, 2 * kTick, [this] { return threads == 0; });
  const bool are_over = threads == 0;
  lock.unlock();
  for (std::thread* thread : {&talker, &watcher}) {
    if (thread->joinable()) are_over ? thread->join() : thread->detach();
  }
}

void Processes::Shared::heed() {
  std::string known;
  {
    const std::lock_guard lock(mutex);
    known = end;
  }
  if (!known.empty()) {
    is_ending = true;
    throw_end(known);
  }
  const int caught = signal_received();
  if (caught != 0 && !place.is_child) {
    throw Interrupted("interrupted while waiting for the other processes",
                      signal_exit_code(caught));
  }
}

std::string Processes::Shared::store_name() {
  return place.is_hosted ? fmt::format("the launcher's store at {}:{}", place.host, place.port)
                         : describe({0}) + ", where the processes meet";
}

void Processes::Shared::expect_store(bool is_late) {
  std::string why;
  bool was_there = false;
  {
    const std::lock_guard lock(mutex);
    why = broken;
    was_there = is_connected;
  }
  if (why.empty() && !is_late) return;
  if (was_there) throw IoError("stopped answering: " + store_name());
  throw IoError("rank {} of {}: rank 0 can't be reached at {}:{} (MASTER_ADDR, MASTER_PORT): {}",
                place.rank,
                place.size,
                place.host,
                place.port,
                why.empty() ? "the program that listens there does not answer" : why);
}

std::string Processes::Shared::describe(const std::vector<int64_t>& ranks) {
  const std::lock_guard lock(mutex);
  std::vector<std::string> texts;
  for (const int64_t rank : ranks) {
    const std::string& name = names[static_cast<std::size_t>(rank)];
    texts.push_back(fmt::format("rank {}", rank));
    if (logs.empty()) continue;
    texts.back() += fmt::format(" ({}; log: {}{})",
                                name.empty() ? "never came" : name,
                                logs,
                                rank == 0 ? ".log" : fmt::format(".rank{}.log", rank));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

void Processes::Shared::end_with(const std::string& text) {
  {
    const std::lock_guard lock(mutex);
    if (end.empty()) end = text;
    asked.emplace_back([this, mine = text.substr(0, kMostText)](c10d::Store& store) {
      const std::string first = store.compareSet(kEnd, std::string(), mine);
      const std::lock_guard own_lock(mutex);
      if (first != mine && is_end(first)) end = first;
    });
  }
  changed.notify_all();
}

bool Processes::Shared::has_end() {
  const std::lock_guard lock(mutex);
  return !end.empty();
}

void Processes::Shared::flush() {
  try {
    ask([](c10d::Store&) { return 0; }, 4 * kTick);
  } catch (const std::exception&) {  // no process is there to be informed
  }
}

void Processes::Shared::await_all() {
  const auto begin = std::chrono::steady_clock::now();
  for (;;) {
    const auto all = ask(
        [size = place.size](c10d::Store& store) {
          std::vector<std::string> found;
          for (int64_t rank = 0; rank < size; ++rank)
            found.push_back(printable(read(store, name_of(rank), kMostName).value_or("")));
          return found;
        },
        timeout,
        true);
    {
      const std::lock_guard lock(mutex);
      names = all;
    }
    std::vector<int64_t> missing;
    for (int64_t rank = 0; rank < place.size; ++rank) {
      if (all[static_cast<std::size_t>(rank)].empty()) missing.push_back(rank);
    }
    if (missing.empty()) return;
    if (std::chrono::steady_clock::now() - begin > timeout)
      throw IoError("never came: {} (trainer.process_timeout)", describe(missing));
    std::this_thread::sleep_for(50ms);
  }
}

void Processes::Shared::explain(const std::string& what) {
  const bool is_late =
      what.find("imed out") != std::string::npos || what.find("imeout") != std::string::npos;
  const auto ask_lives = [size = place.size](c10d::Store& store) {
    return lives_of(store, 0, size);
  };
  try {
    std::vector<std::string> before;
    if (!has_end()) before = ask(ask_lives, kSilence);
    for (auto waited = 0ms; waited < kSilence && !has_end(); waited += 100ms)
      std::this_thread::sleep_for(100ms);
    if (!has_end()) {
      const std::vector<std::string> after = ask(ask_lives, kSilence);
      std::vector<int64_t> silent, behind;
      int64_t least = INT64_MAX;
      for (int64_t rank = 0; rank < place.size; ++rank) {
        const auto at = static_cast<std::size_t>(rank);
        if (rank != place.rank && before[at] == after[at]) silent.push_back(rank);
        const std::size_t space = after[at].find(' ');
        const int64_t count =
            space == std::string::npos ? -1 : std::atoll(after[at].c_str() + space);
        if (count < least) behind.clear();
        least = std::min(least, count);
        if (count == least) behind.push_back(rank);
      }
      if (!silent.empty()) {
        is_first_gone = silent.front() == 0;
        end_with("4 stopped answering: " + describe(silent) +
                 ": killed, out of memory, or its machine is gone");
      } else if (is_late) {
        end_with(fmt::format(
            "4 waited {} (trainer.process_timeout) for {}: it lives, but is busy elsewhere",
            format_seconds(std::chrono::duration<double>(timeout).count()),
            describe(behind)));
      } else {
        end_with(fmt::format("4 rank {}: {}", place.rank, split(what, '\n').front()));
      }
      flush();
    }
  } catch (const std::exception&) {  // the store went with rank 0
    is_first_gone = true;
    end_with("4 stopped answering: " + store_name());
  }
  std::string known;
  {
    const std::lock_guard lock(mutex);
    known = end;
  }
  throw_end(known);
}

/// Reports that this process is alive, and reads the reports of the others.
void Processes::Shared::talk_once(c10d::Store& store, int64_t tick) {
  store.set(life_of(place.rank), fmt::format("{} {}", tick, operations.load()));
  if (signal == 0 && signal_received() != 0) store.set(kSignal, std::to_string(signal_received()));
  if (signal == 0) {
    const int sent = std::atoi(read(store, kSignal, 8).value_or("0").c_str());
    if (std::ranges::count(kEndSignals, sent) != 0) {
      signal = sent;
      note_signal(sent);  // heard where this process waits for an image, too
    }
  }
  const std::string failed = read(store, kEnd, kMostText).value_or("");
  const int64_t looked_at = place.rank == 0 ? place.size : 1;  // who is silent, rank 0 decides
  std::vector<std::string> heard = lives_of(store, 0, looked_at);
  const std::lock_guard lock(mutex);
  if (end.empty() && is_end(failed)) end = failed;
  std::move(heard.begin(), heard.end(), lives.begin());
  ++rounds;
}

void Processes::Shared::talk() {
  try {
    const StorePtr store = connect_store(place, timeout);
    {
      const std::lock_guard lock(mutex);
      is_connected = true;
    }
    for (int64_t tick = 0;; ++tick) {
      talk_once(*store, tick);
      const auto next = std::chrono::steady_clock::now() + kTick;
      std::unique_lock lock(mutex);
      while (changed.wait_until(lock, next, [this] { return is_done || !asked.empty(); })) {
        if (asked.empty()) return;
        const auto one = std::move(asked.front());
        asked.pop_front();
        lock.unlock();
        one(*store);
        lock.lock();
      }
    }
  } catch (const std::exception& error) {
    const std::lock_guard lock(mutex);
    broken = split(error.what(), '\n').front();
  }
}

/// Counts its own rounds, not time: while this process is stopped or its machine sleeps, the
/// counts do not grow.
void Processes::Shared::watch() {
  const auto count = lives.size();
  std::vector<std::string> before(count);
  std::vector<milliseconds> silent(count, 0ms);
  milliseconds store_silent = 0ms, ended = 0ms;
  int64_t round = 0;
  for (;;) {
    bool is_broken = false, has_ended = false;
    {
      std::unique_lock lock(mutex);
      if (changed.wait_for(lock, kTick, [this] { return is_done; })) return;
      is_broken = is_connected && !broken.empty();
      has_ended = !end.empty();
      store_silent = is_connected && rounds == round ? store_silent + kTick : 0ms;
      for (std::size_t r = 0; r < count && rounds != round; ++r) {
        silent[r] = lives[r].empty() || lives[r] != before[r] ? 0ms : silent[r] + kTick;
        before[r] = lives[r];
      }
      round = rounds;
    }
    if (!has_ended) {
      const int caught = signal_received();
      const milliseconds most =
          caught != 0 ? 2 * kSilence : std::clamp(timeout, kSilence, kMostSilence);
      const auto fail = [&](const std::string& what) {
        has_ended = true;
        caught == 0 ? end_with("4 " + what)
                    : end_with(fmt::format("{} interrupted; {}", signal_exit_code(caught), what));
      };
      std::vector<int64_t> lost;
      for (std::size_t r = 0; r < count; ++r) {
        if (silent[r] >= most) lost.push_back(static_cast<int64_t>(r));
      }
      const std::string died = hooks.lost ? hooks.lost() : "";
      const std::string since =
          fmt::format(" gave no sign of life for {}: stopped, or its machine hangs",
                      format_seconds(std::chrono::duration<double>(most).count()));
      if (!died.empty()) {
        fail(died);
      } else if (is_broken) {
        fail("stopped answering: " + store_name());
      } else if (store_silent >= most) {
        fail(store_name() + since);
      } else if (!lost.empty()) {
        fail(describe(lost) + since);
      }
      is_first_gone = is_first_gone || is_broken || store_silent >= most ||
                      (!lost.empty() && lost.front() == 0);
    }
    // The training thread should notice by itself, unless it waits for a silent process, a device
    // or a disk.
    if (!has_ended || is_ending) continue;
    ended += kTick;
    std::function<void()> break_off;
    std::string why;
    {
      const std::lock_guard lock(mutex);
      why = end;
      if (ended == 2 * kTick) break_off = cut;
    }
    if (break_off) {
      break_off();
    } else if (ended > kGrace && hooks.end) {
      hooks.end(why.substr(why.find(' ') + 1), std::max(1, std::atoi(why.c_str())));
    }
  }
}

}  // namespace cytra::training
