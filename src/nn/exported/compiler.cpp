#include "nn/exported/compiler.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/strings.h"
#include "nn/weights.h"

namespace cytra::nn {

namespace {

[[noreturn]] void refuse_exported_call(const io::ExportedCall& call, const std::string& what) {
  throw DataError("{}{}: {}",
                  printable(call.target),
                  call.place.empty() ? "" : " in " + printable(call.place),
                  what);
}

/// Throws: DataError for a number where a form of ours reads a tensor.
void expect_operands(const OperatorCall& op) {
  for (const char* name : {"input", "self", "weight", "bias", "running_mean", "running_var"}) {
    if (!op.has(name)) continue;
    const ArgumentSource& source = op.argument(name);
    const bool is_none = !source.is_list && !source.is_device && source.constant.isNone();
    if (source.value < 0 && !is_none)
      throw DataError("its argument '{}' is no tensor of the graph", name);
  }
}

}  // namespace

void ExportedCompiler::compile() {
  for (const io::ExportedInput& input : graph_.inputs) add_input(input);
  read_calls();
  find_shared_memory();
  expect_all_inputs_read();
  for (std::size_t i = 0; i < calls_.size(); ++i) add(i);
  register_rest();
  for (const io::ExportedOutput& output : graph_.outputs) add_output(output);
  if (to_.results_.empty()) throw DataError("forward() gives no tensor");
  note_last_reads();
  for (std::size_t i = 0; i < to_.initial_.size(); ++i)
    to_.memory_.push_back(memory_->of(static_cast<int>(i)));
  to_.find_segments();
  say_what_stays();
}

int ExportedCompiler::number_of(const std::string& name) const {
  const auto found = numbers_.find(name);
  if (found == numbers_.end())
    throw DataError("the value '{}' is used before it is made", printable(name));
  return found->second;
}

int ExportedCompiler::new_number(const std::string& name) {
  const auto number = static_cast<int>(to_.initial_.size());
  if (!name.empty() && !numbers_.emplace(name, number).second)
    throw DataError("the value '{}' is made twice", printable(name));
  to_.initial_.emplace_back();
  values_.emplace_back();
  return number;
}

void ExportedCompiler::add_input(const Input& input) {
  if (input.kind == Input::Kind::user) {
    to_.inputs_.push_back(new_number(input.value));
    return;
  }
  const auto alias = graph_.aliases.find(input.target);
  const std::string& name = alias == graph_.aliases.end() ? input.target : alias->second;
  const auto same = named_.find(name);
  if (same != named_.end()) {  // a tensor that modules share
    if (!numbers_.emplace(input.value, same->second).second)
      throw DataError("the value '{}' is made twice", printable(input.value));
    return;
  }
  const int number = new_number(input.value);
  named_[name] = number;
  const bool is_constant = input.kind == Input::Kind::constant || !input.is_persistent;
  value(number).tensor = {
      input.kind, name, is_constant ? fmt::format("constant_{}", constants_++) : "", {}};
}

void ExportedCompiler::read_calls() {
  for (const io::ExportedCall& call : graph_.calls) {
    Call read{&call, {}, {}, {}};
    std::set<int> reads;
    const auto note = [&](const std::string& name) {
      const int number = number_of(name);
      reads.insert(number);
      return number;
    };
    try {
      // What types and ranges Python had: autocast has others.
      if (call.target.starts_with("torch.ops.aten.sym_constrain_range") ||
          call.target.starts_with("torch.ops.aten._assert_tensor_metadata"))
        continue;
      if (find_symbol_function(call.target) != nullptr) {
        for (const io::ExportedArgument& input : call.inputs)
          if (input.kind == io::ExportedArgument::Kind::value) note(input.text);
      } else {
        read.op.emplace(call, note);
      }
      for (const io::ExportedArgument& output : call.outputs) add_results(output, read);
    } catch (const DataError& error) {
      refuse_exported_call(call, error.what());
    }
    read.reads.assign(reads.begin(), reads.end());
    for (const int number : read.reads) value(number).readers.push_back(calls_.size());
    for (const int number : read.writes)
      if (number >= 0) value(number).maker = calls_.size();
    is_of_training_mode_ = is_of_training_mode_ || (read.op && trains(*read.op));
    calls_.push_back(std::move(read));
  }
  for (const io::ExportedOutput& output : graph_.outputs)
    if (output.argument.kind == io::ExportedArgument::Kind::value)
      value(number_of(output.argument.text)).is_result = true;
}

void ExportedCompiler::expect_all_inputs_read() const {
  for (std::size_t i = 0; i < to_.inputs_.size(); ++i) {
    if (!value(to_.inputs_[i]).readers.empty()) continue;
    throw DataError(
        "forward() does not use its tensor {} of {}; where one tensor is the example of several, "
        "torch.export takes them for one",
        i + 1,
        to_.inputs_.size());
  }
}

void ExportedCompiler::add_results(const io::ExportedArgument& output, Call& call) {
  using Kind = io::ExportedArgument::Kind;
  if (output.kind == Kind::value) {
    call.writes.push_back(new_number(output.text));
  } else if (output.kind == Kind::list) {
    call.gives_list = true;
    for (const io::ExportedArgument& item : output.items) add_results(item, call);
  } else {
    call.writes.push_back(-1);
  }
}

void ExportedCompiler::find_shared_memory() {
  memory_.emplace(to_.initial_.size());
  for (const Call& call : calls_)
    if (call.op) memory_->note(*call.op, call.reads, call.writes);
  to_.is_row_major_ = memory_->needs_row_major();
  for (const int input : to_.inputs_)
    to_.changes_in_place_ = to_.changes_in_place_ || memory_->is_changed(input);
}

std::map<std::string, ExportedCompiler::AddForm> ExportedCompiler::own_forms() {
  using C = ExportedCompiler;
  std::map<std::string, AddForm> forms{
      {"add_", &C::drop_count}, {"bernoulli", &C::add_noise}, {"bernoulli_", &C::add_noise}};
  for (const char* name : {"conv2d", "conv3d", "conv_transpose2d", "conv_transpose3d"})
    forms[name] = &C::add_convolution;
  for (const char* name : {"batch_norm", "instance_norm", "group_norm", "layer_norm"})
    forms[name] = &C::add_norm;
  for (const char* in_place : {"", "_"}) {
    for (const char* name : {"dropout", "feature_dropout"})
      forms[std::string(name) + in_place] = &C::add_dropout;
    for (const char* name : {"relu", "silu", "leaky_relu", "elu", "gelu"})
      forms[std::string(name) + in_place] = &C::add_activation;
  }
  return forms;
}

void ExportedCompiler::add(std::size_t index) {
  Call& call = calls_[index];
  if (call.is_done) return;
  try {
    if (!call.op) return add_symbol(call);
    static const std::map<std::string, AddForm> forms = own_forms();
    const auto own = forms.find(call.op->short_name());
    if (own != forms.end()) expect_operands(*call.op);
    keep_norms_whole(call);
    if (own != forms.end() && (this->*own->second)(call)) return;
    if (!add_power_iteration(call)) add_operator(call);
  } catch (const DataError& error) {
    refuse_exported_call(*call.source, error.what());
  }
}

int ExportedCompiler::now(int number) const {
  while (value(number).replaced >= 0) number = value(number).replaced;
  return number;
}

ExportedStep& ExportedCompiler::push(const Call& call, ExportedRun run) {
  if (call.source->is_outside_autocast) run = outside_autocast(std::move(run));
  // Weights whose channels come last turn the order of an image's.
  if (to_.is_row_major_ && call.op && call.op->short_name().starts_with("conv"))
    run = [run = std::move(run), to = call.writes.at(0)](Values& values, c10::Device device) {
      run(values, device);
      at(values, to) = at(values, to).toTensor().contiguous();
    };
  ExportedStep step{std::move(run), call.reads, call.writes, {}, call.source->target};
  for (int& number : step.reads) number = now(number);
  if (!call.source->place.empty()) step.name += " in " + call.source->place;
  to_.steps_.push_back(std::move(step));
  return to_.steps_.back();
}

at::Tensor ExportedCompiler::values_of(const Tensor& tensor) const {
  at::Tensor values = tensor_(tensor.name);
  if (!values.defined() && !tensor.saved_as.empty())
    values = tensor_(kGraphModule + tensor.saved_as);
  if (!values.defined()) throw DataError("the file has no tensor '{}'", printable(tensor.name));
  return values;
}

// --- the tensors that no layer has taken ---------------------------------------------------------

void ExportedCompiler::register_rest() {
  auto constants = std::make_shared<torch::nn::Module>();
  for (std::size_t i = 0; i < values_.size(); ++i) {
    std::optional<Tensor>& tensor = values_[i].tensor;
    if (!tensor || tensor->tensor.defined()) continue;
    tensor->tensor = tensor->saved_as.empty()
                         ? register_tensor(*tensor)
                         : constants->register_buffer(tensor->saved_as, values_of(*tensor));
    to_.initial_[i] = tensor->tensor;
  }
  to_.constants_ = std::move(constants);
}

at::Tensor ExportedCompiler::register_tensor(const Tensor& tensor) {
  const at::Tensor values = values_of(tensor);
  torch::nn::Module& parent = parent_of(root_, tensor.name);
  const std::string last = tensor.name.substr(tensor.name.rfind('.') + 1);
  if (last.empty() || parent.named_parameters(false).contains(last) ||
      parent.named_buffers(false).contains(last))
    throw DataError("two tensors have the name '{}'", printable(tensor.name));
  if (tensor.kind == Input::Kind::parameter && values.is_floating_point())
    return parent.register_parameter(last, values);
  return parent.register_buffer(last, values);
}

void ExportedCompiler::add_output(const io::ExportedOutput& output) {
  using Kind = io::ExportedArgument::Kind;
  if (!output.buffer.empty()) {
    const auto buffer = named_.find(output.buffer);
    if (buffer != named_.end())
      to_.mutations_.emplace_back(buffer->second, now(number_of(output.argument.text)));
    return;
  }
  if (output.argument.kind == Kind::none) return;
  if (output.argument.kind != Kind::value)
    throw DataError("forward() gives something else than tensors");
  to_.results_.push_back(now(number_of(output.argument.text)));
}

void ExportedCompiler::note_last_reads() {
  std::set<int> needed(to_.results_.begin(), to_.results_.end());
  for (const auto& [buffer, content] : to_.mutations_) needed.insert(content);
  for (std::size_t i = 0; i < values_.size(); ++i)
    if (values_[i].tensor) needed.insert(static_cast<int>(i));
  for (auto step = to_.steps_.rbegin(); step != to_.steps_.rend(); ++step) {
    for (const int number : step->reads)
      if (needed.insert(number).second) step->last.push_back(number);
    for (const int number : step->writes)
      if (number >= 0 && needed.count(number) == 0) step->last.push_back(number);
  }
}

void ExportedCompiler::say_what_stays() {
  int64_t with_mode = 0, frozen = 0;
  for (const Call& call : calls_) {
    if (!call.op || !has_mode(*call.op)) continue;
    ++with_mode;
    frozen += call.op->short_name() == "batch_norm" && !follows(call) ? 1 : 0;
  }
  if (with_mode > 0 && !is_of_training_mode_)
    to_.remarks_.emplace_back(
        "it was exported in evaluation mode: what its Python does in training alone is not in the "
        "file; dropouts and batch norms that are there train");
  if (frozen > 0)
    to_.remarks_.push_back(fmt::format("{} batch norms are frozen in the file", frozen));
  if (!random_.empty())
    to_.remarks_.push_back(
        fmt::format("it draws random numbers in evaluation, too ({})", fmt::join(random_, ", ")));
}

}  // namespace cytra::nn
