#pragma once
#include <memory>
#include <vector>

namespace cytra::data {
struct Batch;
}

namespace cytra::training {

struct Callback;
struct Context;

/// Calls a hook of all callbacks, in their order, e.g. "on_step_end" and &Callback::on_step_end.
/// context.batch is `batch` meanwhile and null afterwards, also when one throws. Throws: errors of
/// base/error.h and those of memory as they are; others as a std::runtime_error that names callback
/// and hook.
void call_hook(const std::vector<std::shared_ptr<Callback>>& callbacks,
               const char* name,
               void (Callback::*hook)(Context&),
               Context& context,
               const data::Batch* batch = nullptr);

}  // namespace cytra::training
