#include "nn/flop_counter.h"

#include <memory>
#include <string_view>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <ATen/record_function.h>

namespace cytra::nn {
namespace {

struct Counting {
  FlopCounter::OnFlops on_flops;
  int depth = 0;
};
thread_local std::unique_ptr<Counting> thread_counting;

struct Operation final : at::ObserverContext {
  int64_t flops = 0, per_output = 0;  // at all, and per value of the output
  double backward = 0;                // times those of the forward pass
  int64_t values = 0;                 // of the inputs
};

/// What is known before it runs; null: an operation that is not counted.
std::unique_ptr<Operation> operation_of(const at::RecordFunction& function) {
  auto operation = std::make_unique<Operation>();
  const std::string_view name = function.name();
  const auto input = [&](std::size_t i) { return function.inputs()[i].toTensor(); };
  const bool has_backward = at::GradMode::is_enabled();  // else weights that require it get none
  const auto add_product = [&](std::size_t first) {  // of two inputs: a gradient costs a product
    for (const std::size_t i : {first, first + 1}) {
      operation->values += input(i).numel();
      operation->backward += has_backward && input(i).requires_grad() ? 1 : 0;
    }
  };
  const bool is_ours = name == "cytra::convolution";  // input, weight, transposed
  if (is_ours || name == "aten::convolution") {
    const at::Tensor weight = input(1);
    const bool is_transposed = function.inputs()[is_ours ? 2 : 6].toBool();
    if (is_transposed) {  // weight is (C_in, C_out / groups, ...)
      operation->flops = 2 * input(0).numel() / weight.size(0) * weight.numel();
    } else {
      operation->per_output = 2 * weight.numel() / weight.size(0);
    }
    add_product(0);
  } else if (name == "aten::mm" || name == "aten::bmm") {
    operation->per_output = 2 * input(0).size(-1);
    add_product(0);
  } else if (name == "aten::addmm" || name == "aten::baddbmm") {
    operation->per_output = 2 * input(1).size(-1);
    add_product(1);
  } else if (name.rfind("aten::_scaled_dot_product_", 0) == 0 &&
             name != "aten::_scaled_dot_product_attention_math") {
    const at::Tensor query = input(0), key = input(1), value = input(2);  // (N, heads, S, E)
    operation->flops =
        2 * query.numel() / query.size(-1) * key.size(-2) * (query.size(-1) + value.size(-1));
    operation->values = query.numel() + key.numel() + value.numel();
    // The scores again, and four products: with the two of the forward pass, five for two.
    if (has_backward && (query.requires_grad() || key.requires_grad() || value.requires_grad()))
      operation->backward = 2.5;
  } else {
    return nullptr;
  }
  return operation;
}

std::unique_ptr<at::ObserverContext> begin_operation(const at::RecordFunction& function) {
  if (thread_counting == nullptr) return nullptr;
  auto operation = operation_of(function);
  if (operation != nullptr) thread_counting->depth += 1;  // what it calls is not counted again
  return operation;
}

void end_operation(const at::RecordFunction& function, at::ObserverContext* context) {
  if (context == nullptr || thread_counting == nullptr) return;
  const auto& operation = static_cast<const Operation&>(*context);
  thread_counting->depth -= 1;
  if (thread_counting->depth > 0) return;
  const int64_t outputs = function.outputs().at(0).toTensor().numel();
  Flops flops;
  flops.forward = operation.flops + operation.per_output * outputs;
  flops.backward = static_cast<int64_t>(operation.backward * static_cast<double>(flops.forward));
  flops.values = operation.values + outputs;
  thread_counting->on_flops(flops);
}

}  // namespace

void Flops::add(const Flops& more) {
  forward += more.forward;
  backward += more.backward;
  values += more.values;
}

FlopCounter::FlopCounter(OnFlops on_flops) {
  thread_counting = std::make_unique<Counting>();
  thread_counting->on_flops = std::move(on_flops);
  handle_ = at::addThreadLocalCallback(at::RecordFunctionCallback(&begin_operation, &end_operation)
                                           .needsInputs(true)
                                           .needsOutputs(true)
                                           .scopes({at::RecordScope::FUNCTION}));
}

FlopCounter::~FlopCounter() {
  at::removeCallback(handle_);
  thread_counting.reset();
}

Flops count_flops(const std::function<void()>& work) {
  Flops all;
  const FlopCounter counter([&all](const Flops& flops) { all.add(flops); });
  work();
  return all;
}

}  // namespace cytra::nn
