#include "base/expect_threads.h"

#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <vector>

#include <pthread.h>

#include "base/control_groups.h"
#include "base/error.h"

namespace cytra {
namespace {

constexpr int64_t kMostThreads = 4096, kOtherThreads = 8;  // threads that read, write and watch

/// How many of `count` threads can live at a time.
int64_t startable_threads(int64_t count) {
  std::mutex held;
  std::vector<pthread_t> threads;
  {
    const std::lock_guard lock(held);
    pthread_attr_t attributes;
    ::pthread_attr_init(&attributes);
    ::pthread_attr_setstacksize(&attributes, std::size_t{1} << 17);
    const auto wait = [](void* mutex) -> void* {
      const std::lock_guard lock(*static_cast<std::mutex*>(mutex));
      return nullptr;
    };
    pthread_t thread{};
    while (std::ssize(threads) < count && ::pthread_create(&thread, &attributes, wait, &held) == 0)
      threads.push_back(thread);
    ::pthread_attr_destroy(&attributes);
  }
  for (const pthread_t thread : threads) ::pthread_join(thread, nullptr);
  return std::ssize(threads);
}

}  // namespace

void expect_threads() {
  int64_t threads = available_processors();
  for (const char* name : {"MKL_NUM_THREADS", "OMP_NUM_THREADS"}) {  // the last one counts
    const char* const text = std::getenv(name);
    const int64_t wanted = text == nullptr ? 0 : std::strtoll(text, nullptr, 10);
    if (wanted > kMostThreads) {
      throw ConfigError(
          "{}={} in the environment: expected at most {} threads; this machine has {} processors "
          "for them",
          name,
          text,
          kMostThreads,
          available_processors());
    }
    if (wanted > 0) threads = wanted;
  }
  const int64_t expected = threads + kOtherThreads, started = startable_threads(expected);
  if (started == expected) return;
  throw IoError(
      "the system lets this process start {} threads, expected {}: raise `ulimit -u` or the "
      "container's limit of processes, or set OMP_NUM_THREADS=1",
      started,
      expected);
}

}  // namespace cytra
