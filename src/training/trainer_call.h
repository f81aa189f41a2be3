#pragma once
// For the trainer alone: its files call callbacks by it.
#include <ATen/record_function.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>

#include "base/error.h"
#include "perf/device.h"
#include "perf/device_error.h"
#include "training/profiler.h"
#include "training/trainer.h"

namespace cytra::training {

template <class Hook>
void Trainer::call(const char* name, Hook hook) {
  for (const auto& callback : callbacks_) {
    const auto fail = [&](const std::string& what) {
      throw std::runtime_error(
          fmt::format("callbacks.{} failed in {}: {}", callback->name, name, what));
    };
    try {
      at::RecordFunction scope(at::RecordScope::USER_SCOPE);  // for profilers
      if (scope.isActive() && callback->name != kProfilerName)
        scope.before(fmt::format("callbacks.{}.{}", callback->name, name));
      hook(*callback);
    } catch (const Error&) {
      throw;
    } catch (const std::exception& error) {
      if (perf::is_out_of_memory(error)) throw;  // has advice of its own
      const auto* of_torch = dynamic_cast<const c10::Error*>(&error);
      if (of_torch != nullptr) perf::throw_device_error(of_torch->what_without_backtrace());
      fail(of_torch != nullptr ? of_torch->what_without_backtrace() : error.what());
    }
  }
}

}  // namespace cytra::training
