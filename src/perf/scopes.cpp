#include "perf/scopes.h"

#include <memory>
#include <stdexcept>

#include <ATen/record_function.h>
#include <c10/util/Logging.h>

namespace cytra::perf {
namespace {

// Of this thread; null: none listens. Torch calls begin_scope() and end_scope() in the threads of a
// backward pass, too, where there is none.
thread_local ScopeListener* thread_listener = nullptr;

/// Torch keeps it from a scope's begin to its end, where it shows that the listener knows the
/// scope.
struct BegunScope final : at::ObserverContext {};

std::unique_ptr<at::ObserverContext> begin_scope(const at::RecordFunction& function) {
  if (thread_listener == nullptr) return nullptr;
  thread_listener->begin(function.name());
  return std::make_unique<BegunScope>();
}

void end_scope(const at::RecordFunction& /*function*/, at::ObserverContext* begun) {
  if (thread_listener != nullptr && begun != nullptr) thread_listener->end();
}

}  // namespace

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
