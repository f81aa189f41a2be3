// Part of nn/exported/compiler.h: functions of numbers, noise, activations, and what is called as
// it is.

#include <ATen/ATen.h>

#include "base/error.h"
#include "nn/dropout.h"
#include "nn/exported/compiler.h"
#include "nn/exported/modes.h"

namespace cytra::nn {
namespace {

/// Puts an operator's results at their numbers.
void store(torch::jit::Stack& stack, bool is_list, const std::vector<int>& writes, Values& values) {
  if (is_list) {
    if (stack.size() != 1 || !stack[0].isTensorList())
      throw DataError("it gives no list of tensors");
    const std::vector<at::Tensor> tensors = stack[0].toTensorVector();
    if (tensors.size() != writes.size())
      throw DataError("it gives {} tensors, expected {}", tensors.size(), writes.size());
    for (std::size_t i = 0; i < writes.size(); ++i)
      if (writes[i] >= 0) values[static_cast<std::size_t>(writes[i])] = tensors[i];
    return;
  }
  if (stack.size() < writes.size()) throw DataError("it gives fewer results than expected");
  for (std::size_t i = 0; i < writes.size(); ++i)
    if (writes[i] >= 0) values[static_cast<std::size_t>(writes[i])] = std::move(stack[i]);
}

}  // namespace

void ExportedCompiler::add_symbol(const Call& call) {
  std::vector<ArgumentSource> sources;
  for (const io::ExportedArgument& input : call.source->inputs) {
    ArgumentSource source;
    using Kind = io::ExportedArgument::Kind;
    if (input.kind == Kind::value) source.value = number_of(input.text);
    if (input.kind == Kind::integer) source.constant = input.integer;
    if (input.kind == Kind::real) source.constant = input.real;
    if (input.kind == Kind::boolean) source.constant = input.integer != 0;
    sources.push_back(std::move(source));
  }
  if (call.writes.size() != 1 || call.writes[0] < 0) throw DataError("it gives no number");
  const SymbolFunction& function = *find_symbol_function(call.source->target);
  if (sources.size() != function.inputs)
    throw DataError("it is given {} numbers, expected {}", sources.size(), function.inputs);
  push(call, [sources, &function, to = call.writes[0]](Values& values, c10::Device) {
    Values inputs;
    for (const ArgumentSource& source : sources)
      inputs.push_back(source.value >= 0 ? at(values, source.value) : source.constant);
    for (const c10::IValue& input : inputs)
      if (!input.isScalar()) throw DataError("it is given what is no number");
    at(values, to) = function.compute(inputs);
  }).gives_numbers = true;
}

bool ExportedCompiler::drop_count(Call& call) {
  const int self = now(call.op->value("self"));
  const std::optional<Tensor>& buffer = value(self).tensor;
  if (!buffer || buffer->kind != Input::Kind::buffer ||
      !buffer->name.ends_with("num_batches_tracked"))
    return false;
  value(call.writes.at(0)).replaced = self;
  return true;
}

bool ExportedCompiler::follows(const Call& call) const {
  return has_mode(*call.op) && (trains(*call.op) || !is_of_training_mode_);
}

bool ExportedCompiler::add_noise(Call& call) {
  const OperatorCall& op = *call.op;
  if (op.overload() != (op.changes_first() ? "float" : "p")) return false;
  const auto p = op.real("p");
  if (!p) return false;
  if (!(*p >= 0 && *p <= 1)) throw DataError("noise of another share than 0 to 1");
  const int x = op.value("self"), to = call.writes.at(0);
  to_.random_parts_.insert(op.short_name());
  push(call,
       [this_root = &root_, from = now(x), to, p = *p, in_place = op.changes_first()](
           Values& values, c10::Device) {
         const at::Tensor& target = at(values, from).toTensor();
         if (drops(1 - p, this_root->is_training())) {
           at(values, to) = in_place ? at::Tensor(target).bernoulli_(p) : target.bernoulli(p);
         } else {
           at(values, to) = in_place ? at::Tensor(target).fill_(p) : at::full_like(target, p);
         }
       })
      .changes = op.changes_first() ? x : -1;
  return true;
}

bool ExportedCompiler::add_activation(Call& call) {
  if (call.reads.size() != 1 || call.writes.size() != 1) return false;
  const auto activation = activation_of(*call.op);
  if (!activation) return false;
  using A = ops::Activation;
  const int x = call.reads[0], to = call.writes[0];
  static const std::set<std::string> kKeepNoResult{
      "add", "sub", "cat", "conv2d", "conv3d", "conv_transpose2d", "conv_transpose3d"};
  const Value& read = value(x);
  const bool is_of_norm = value(now(x)).is_of_norm;
  const bool is_only = read.readers.size() == 1 && !read.is_result;
  const bool is_free = is_only && read.maker && calls_[*read.maker].op &&
                       kKeepNoResult.count(calls_[*read.maker].op->short_name()) > 0 &&
                       !is_of_norm && (call.op->changes_first() || !memory_->is_changed(to));
  const bool can_change =
      activation->kind == A::kRelu || (activation->kind == A::kLeakyRelu && activation->slope >= 0);
  const bool is_in_place = call.op->changes_first();
  if (is_in_place && !(is_free && can_change) && !is_of_norm) return false;
  push(call,
       [a = *activation, from = now(x), to, in_place = is_free && can_change](Values& values,
                                                                              c10::Device) {
         at::Tensor input = at(values, from).toTensor();
         if (!in_place) {
           at(values, to) = ops::activate(input, a);
         } else {
           at(values, to) = a.kind == A::kRelu ? at::relu_(input) : at::leaky_relu_(input, a.slope);
         }
       })
      .changes = is_free && can_change ? x : -1;
  if (is_in_place) value(x).replaced = to;
  return true;
}

void ExportedCompiler::keep_norms_whole(Call& call) {
  OperatorCall& op = *call.op;
  const int x = first_value(op);
  if (!op.changes_first() || x < 0 || !value(now(x)).is_of_norm || activation_of(op)) return;
  std::string name = op.name();
  name.pop_back();
  op.become(name);
  call.is_of_norm = true;
}

bool ExportedCompiler::add_power_iteration(const Call& call) {
  OperatorCall op = *call.op;
  if (!op.has("out") || op.value("out") < 0 || call.writes.at(0) < 0) return false;
  const int out = op.value("out"), to = call.writes.at(0);
  bool is_of_iteration = false;
  for (int number = 0; number < static_cast<int>(values_.size()); ++number) {
    const std::optional<Tensor>& known = value(number).tensor;
    is_of_iteration |= memory_->of(number) == memory_->of(out) && known &&
                       known->kind == Input::Kind::buffer &&
                       (known->name.ends_with("_u") || known->name.ends_with("_v"));
  }
  if (!is_of_iteration) return false;
  op.rename_values([this](int number) { return now(number); });
  push(call, [op, root = &root_, from = now(out), to](Values& values, c10::Device device) {
    at(values, to) = at(values, from);
    if (!root->is_training()) return;
    const at::NoGradGuard no_grad;
    torch::jit::Stack stack;
    op.run(values, device, stack);
  }).changes = out;
  return true;
}

void ExportedCompiler::add_operator(const Call& call) {
  OperatorCall op = *call.op;
  const std::string name = op.short_name();
  // A view of what Python has in row-major order; here channels may come last.
  if (name == "view" && op.overload().empty() && !to_.is_row_major_) op.become("aten::reshape");
  op.rename_values([this](int number) { return now(number); });
  std::optional<OperatorCall> in_evaluation;
  if (follows(call)) {
    op.set(training_argument(op.short_name()), true);
    in_evaluation = op;
    in_evaluation->set(training_argument(op.short_name()), false);
  } else if (name == "scaled_dot_product_attention" && op.real("dropout_p").value_or(0) > 0) {
    in_evaluation = op;
    in_evaluation->set("dropout_p", 0.0);
    to_.random_parts_.insert(name);
  } else if (is_random(op.short_name())) {
    random_.insert(name);
    to_.random_parts_.insert(name);
  }
  ExportedStep& step =
      push(call,
           [op, in_evaluation, root = &root_, is_list = call.gives_list, writes = call.writes](
               Values& values, c10::Device device) {
             torch::jit::Stack stack;
             const bool evaluates = in_evaluation && !root->is_training();
             (evaluates ? *in_evaluation : op).run(values, device, stack);
             store(stack, is_list, writes, values);
           });
  step.changes = changes(op) ? first_value(*call.op) : -1;
  step.gives_numbers = op.gives_numbers();
  if (call.is_of_norm) value(first_value(*call.op)).replaced = call.writes.at(0);
}

}  // namespace cytra::nn
