#include "perf/scopes.h"

#include <memory>
#include <stdexcept>

#include <ATen/record_function.h>
#include <c10/util/Logging.h>

namespace cytra::perf {
namespace {

// Of the thread that listens; torch carries its callbacks over to the threads of a backward pass.
thread_local ScopeListener* active = nullptr;

struct Told final : at::ObserverContext {};

std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& function) {
  if (active == nullptr) return nullptr;
  active->begin(function.name());
  return std::make_unique<Told>();
}

void end(const at::RecordFunction& /*function*/, at::ObserverContext* context) {
  if (active != nullptr && context != nullptr) active->end();
}

}  // namespace

Listening::Listening(ScopeListener& listener, bool to_operations) {
  if (active != nullptr) throw std::logic_error("two profilers in one thread");
  active = &listener;
  at::RecordFunctionCallback callback(&begin, &end);
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
  active = nullptr;
}

QuietLog::QuietLog() : before_(FLAGS_caffe2_log_level) {
  FLAGS_caffe2_log_level = 2;
}
QuietLog::~QuietLog() {
  FLAGS_caffe2_log_level = before_;
}

}  // namespace cytra::perf
