#pragma once
// For the trainer alone: its files call callbacks by it.
#include <ATen/record_function.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>

#include "base/error.h"
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
    } catch (const c10::Error& error) {
      fail(error.what_without_backtrace());
    } catch (const std::exception& error) {
      fail(error.what());
    }
  }
}

}  // namespace cytra::training
