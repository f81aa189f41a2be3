#include "base/foreign_call.h"

#include <atomic>
#include <chrono>
#include <thread>

#include "base/log.h"
#include "base/signal_watch.h"

namespace cytra {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::seconds kGrace{5};
constexpr std::chrono::milliseconds kLook{50};
std::atomic<int> foreign_calls{0};  // the number that run now
std::atomic<unsigned> came_back{0};

/// Waits until all calls have been running for too long. While no call runs, or one returns, the
/// program is about to end by itself.
void wait_for_a_hang() {
  unsigned before = came_back;
  for (auto since = steady_clock::now(); steady_clock::now() - since < kGrace;) {
    std::this_thread::sleep_for(kLook);
    const unsigned now = came_back;
    if (foreign_calls == 0 || now != before) since = steady_clock::now();
    before = now;
  }
}

}  // namespace

ForeignCall::ForeignCall() {
  // The watch is never destroyed: it works until the program ends.
  [[maybe_unused]] static const SignalWatch& watch = *new SignalWatch([](int) {
    wait_for_a_hang();
    log::write(log::Level::error, "ended: the model did not come back after the signal");
  });
  ++foreign_calls;
}

ForeignCall::~ForeignCall() {
  ++came_back;
  --foreign_calls;
}

}  // namespace cytra
