#include "perf/scopes.h"

#include <cstdlib>
#include <memory>
#include <stdexcept>

#include <c10/util/Logging.h>
#include <torch/csrc/profiler/stubs/base.h>

namespace cytra::perf {
namespace {

// The listener of this thread; null: there is none. Torch calls begin_scope() and end_scope() also
// in the threads of a backward pass, where there is none.
thread_local ScopeListener* thread_listener = nullptr;

/// Torch keeps this object from a scope's begin to its end, where it shows that the listener knows
/// the scope.
struct BegunScope final : at::ObserverContext {};

std::unique_ptr<at::ObserverContext> begin_scope(const at::RecordFunction& function) {
  if (thread_listener == nullptr) return nullptr;
  thread_listener->begin(function.name());
  return std::make_unique<BegunScope>();
}

void end_scope(const at::RecordFunction& /*function*/, at::ObserverContext* begun) {
  if (thread_listener != nullptr && begun != nullptr) thread_listener->end();
}

/// NVTX, where a GPU profiler asks for it (as nsys and ncu do, by this variable) and torch's CUDA
/// libraries, which hold NVTX, are loaded; else null.
const torch::profiler::impl::ProfilerStubs* nvtx() {
  static const bool is_attached = std::getenv("NVTX_INJECTION64_PATH") != nullptr;
  if (!is_attached) return nullptr;
  const auto* stubs = torch::profiler::impl::cudaStubs();
  return stubs->enabled() ? stubs : nullptr;
}

}  // namespace

Scope::Scope(const char* name) : record_(at::RecordScope::USER_SCOPE) {
  if (is_watched()) begin(name);
}

Scope::~Scope() {
  if (is_range_) nvtx()->rangePop();
}

bool Scope::is_watched() const {
  return record_.isActive() || timers::are_on() || nvtx() != nullptr;
}

void Scope::begin(const char* name) {
  if (record_.isActive()) record_.before(name);
  if (const auto* ranges = nvtx()) {
    ranges->rangePush(name);
    is_range_ = true;
  }
  timed_.emplace(name);
}

Listening::Listening(ScopeListener& listener, bool to_operations) {
  if (thread_listener != nullptr) throw std::logic_error("two profilers in one thread");
  thread_listener = &listener;
  at::RecordFunctionCallback callback(&begin_scope, &end_scope);
  callback.scopes({at::RecordScope::USER_SCOPE});
  if (to_operations) {
    callback.scopes({at::RecordScope::USER_SCOPE,
                     at::RecordScope::FUNCTION,
                     at::RecordScope::BACKWARD_FUNCTION});
  }
  handle_ = at::addThreadLocalCallback(callback);
}

Listening::~Listening() {
  at::removeCallback(handle_);
  thread_listener = nullptr;
}

QuietLog::QuietLog() : before_(FLAGS_caffe2_log_level) {
  FLAGS_caffe2_log_level = 2;
}
QuietLog::~QuietLog() {
  FLAGS_caffe2_log_level = before_;
}

}  // namespace cytra::perf
