#include "training/trainer/call_hook.h"

#include <c10/util/Exception.h>
#include <fmt/format.h>

#include "base/error.h"
#include "device/error.h"
#include "perf/scopes.h"
#include "training/callback.h"
#include "training/profiler.h"

namespace cytra::training {
namespace {

/// Lets the callbacks see a batch while this lives.
class ShownBatch {
 public:
  ShownBatch(Context& context, const data::Batch* batch) : context_(context) {
    context_.batch = batch;
  }
  ~ShownBatch() { context_.batch = nullptr; }
  ShownBatch& operator=(ShownBatch&&) = delete;

 private:
  Context& context_;
};

}  // namespace

void call_hook(const std::vector<std::shared_ptr<Callback>>& callbacks,
               const char* name,
               void (Callback::*hook)(Context&),
               Context& context,
               const data::Batch* batch) {
  const ShownBatch shown(context, batch);
  for (const auto& callback : callbacks) {
    const auto fail = [&](const std::string& what) {
      throw std::runtime_error(
          fmt::format("callbacks.{} failed in {}: {}", callback->name, name, what));
    };
    try {
      std::optional<perf::Scope> scope;
      if (callback->name != kProfilerName)
        scope.emplace([&] { return fmt::format("callbacks.{}.{}", callback->name, name); });
      (callback.get()->*hook)(context);
    } catch (const Error&) {
      throw;
    } catch (const std::exception& error) {
      if (device::is_out_of_memory(error)) throw;  // has advice of its own
      const auto* of_torch = dynamic_cast<const c10::Error*>(&error);
      if (of_torch != nullptr) device::throw_device_error(of_torch->what_without_backtrace());
      fail(of_torch != nullptr ? of_torch->what_without_backtrace() : error.what());
    }
  }
}

}  // namespace cytra::training
