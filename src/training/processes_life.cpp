// The part of Processes that knows who lives, and says what happened to the others.
#include <algorithm>

#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "base/error.h"
#include "base/log.h"
#include "base/signals.h"
#include "base/strings.h"
#include "training/processes_shared.h"

namespace cytra::training {
namespace {

using namespace std::chrono_literals;

std::string life_of(int64_t rank) {
  return fmt::format("life/{}", rank);
}

/// Throws the error that ended another process, so that this one has the same exit code.
[[noreturn]] void throw_end(const std::string& end) {
  const int code = std::atoi(end.c_str());
  const std::string message = end.substr(end.find(' ') + 1);
  switch (code) {
    case 2:
      throw DataError(message);
    case 5:
      throw MemoryError(message);
    case 6:
      throw DivergedError(message);
    case 1:
      throw std::runtime_error(message);
    default:
      throw IoError(message);
  }
}

}  // namespace

StorePtr Processes::Shared::connect(bool is_server) {
  c10d::TCPStoreOptions options;
  options.port = place.port;
  options.isServer = is_server;
  options.waitWorkers = false;
  options.timeout = timeout;
  try {
    auto tcp = c10::make_intrusive<c10d::TCPStore>(place.host, options);
    if (is_server) {
      server = tcp;
      place.port = tcp->getPort();
    }
    return c10::make_intrusive<c10d::PrefixStore>("cytra/" + place.attempt, tcp);
  } catch (const std::exception& error) {
    throw IoError(fmt::format(
        "rank {} of {}: rank 0 can't be reached at {}:{} (MASTER_ADDR, MASTER_PORT): {}",
        place.rank,
        place.size,
        place.host,
        place.port,
        split(error.what(), '\n').front()));
  }
}

std::string Processes::Shared::describe(const std::vector<int64_t>& ranks) {
  std::vector<std::string> names;
  for (const int64_t rank : ranks) {
    const std::string log = rank == 0 ? logs + ".log" : fmt::format("{}.rank{}.log", logs, rank);
    names.push_back(fmt::format(
        "rank {} ({}; log: {})",
        rank,
        store->check({name_of(rank)}) ? text_of(store->get(name_of(rank))) : "never came",
        log));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string Processes::Shared::end_with(c10d::Store& store, const std::string& text) {
  return store.compareSet(kEnd, std::string(), text);
}

void Processes::Shared::await_all() {
  std::vector<std::string> names;
  std::vector<int64_t> missing;
  for (int64_t rank = 0; rank < place.size; ++rank) names.push_back(name_of(rank));
  const auto begin = std::chrono::steady_clock::now();
  while (!store->check(names)) {
    if (store->check({kEnd})) {
      is_ending = true;
      throw_end(text_of(store->get(kEnd)));
    }
    const int caught = signal_received() != 0 ? signal_received() : signal.load();
    if (caught != 0 && !place.is_child) {
      log::warn("interrupted while waiting for the other processes");
      std::_Exit(signal_exit_code(caught));  // there is nothing to be saved yet
    }
    if (std::chrono::steady_clock::now() - begin > timeout) {
      for (int64_t rank = 0; rank < place.size; ++rank) {
        if (!store->check({name_of(rank)})) missing.push_back(rank);
      }
      throw IoError(fmt::format("never came: {} (trainer.process_timeout)", describe(missing)));
    }
    std::this_thread::sleep_for(50ms);
  }
}

std::vector<std::string> Processes::Shared::lives() {
  std::vector<std::string> all;
  for (int64_t rank = 0; rank < place.size; ++rank)
    all.push_back(store->check({life_of(rank)}) ? text_of(store->get(life_of(rank))) : "");
  return all;
}

void Processes::Shared::explain(const std::string& what) {
  const bool is_late =
      what.find("imed out") != std::string::npos || what.find("imeout") != std::string::npos;
  std::string end;
  try {
    const std::vector<std::string> before = lives();
    for (auto waited = 0ms; waited < kSilence && end.empty(); waited += 100ms) {
      if (store->check({kEnd})) end = text_of(store->get(kEnd));
      if (end.empty() && lost) {
        const std::string died = lost();
        if (!died.empty()) end = end_with(*store, "4 " + died);
      }
      if (end.empty()) std::this_thread::sleep_for(100ms);
    }
    if (end.empty()) {
      const std::vector<std::string> after = lives();
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
        end = end_with(*store,
                       "4 stopped answering: " + describe(silent) +
                           ": killed, out of memory, or its machine is gone");
      } else if (is_late) {
        end = end_with(
            *store,
            fmt::format(
                "4 waited {} (trainer.process_timeout) for {}: it lives, but is busy elsewhere",
                format_seconds(std::chrono::duration<double>(timeout).count()),
                describe(behind)));
      } else {
        end = end_with(*store, fmt::format("4 rank {}: {}", place.rank, split(what, '\n').front()));
      }
    }
  } catch (const c10::Error&) {  // the store went with rank 0
    is_first_gone = true;
    end = "4 stopped answering: rank 0, where the processes meet; log: " + logs + ".log";
  }
  throw_end(end);
}

void Processes::Shared::live() {
  std::string end;
  try {
    const StorePtr own = connect(false);
    bool has_told = false;
    for (int64_t tick = 0; end.empty(); ++tick) {
      own->set(life_of(place.rank), fmt::format("{} {}", tick, operations.load()));
      if (!has_told && signal_received() != 0) {
        own->set(kSignal, std::to_string(signal_received()));
        has_told = true;
      }
      if (signal == 0 && own->check({kSignal}))
        signal = std::atoi(text_of(own->get(kSignal)).c_str());
      if (own->check({kEnd})) end = text_of(own->get(kEnd));
      if (lost && end.empty()) {
        const std::string died = lost();
        if (!died.empty()) end = end_with(*own, "4 " + died);
      }
      std::unique_lock lock(mutex);
      if (changed.wait_for(lock, kTick, [this] { return is_done; })) return;
    }
  } catch (const std::exception&) {
    end = "4 stopped answering: rank 0, which the other processes meet at";
  }
  // The thread that trains should notice by itself, unless it waits for a device or a disk.
  std::unique_lock lock(mutex);
  if (changed.wait_for(lock, kGrace, [this] { return is_done; }) || is_ending) return;
  log::write(log::Level::error, end.substr(end.find(' ') + 1));
  std::_Exit(std::max(1, std::atoi(end.c_str())));
}

}  // namespace cytra::training
