// Part of nn/exported/graph.h: what each call of a graph becomes.
#include <algorithm>
#include <set>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/strings.h"
#include "nn/blocks/layers.h"
#include "nn/dropout.h"
#include "nn/exported/graph.h"
#include "nn/exported/modes.h"
#include "nn/exported/shared_memory.h"
#include "nn/weights.h"
#include "ops/conv/conv.h"
#include "ops/norm/norm.h"

namespace cytra::nn {
/// Makes the steps, one call after the other.
class ExportedCompiler {
 public:
  ExportedCompiler(const io::ExportedGraph& graph,
                   torch::nn::Module& root,
                   const ExportedSteps::FindTensor& tensor,
                   ExportedSteps& to)
      : graph_(graph), root_(root), tensor_(tensor), to_(to) {}

  void compile() {
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

 private:
  using Input = io::ExportedInput;
  /// A call with its operator; none for a function of numbers.
  struct Call {
    const io::ExportedCall* source;
    std::optional<OperatorCall> op;
    std::vector<int> reads, writes;
    bool is_done = false;
    bool is_of_norm = false;  // in the file it changes a norm's result in place
    bool gives_list = false;
  };
  /// A tensor of the file.
  struct Tensor {
    Input::Kind kind;
    std::string name;
    std::string saved_as;  // of what is no part of Python's state dict: its name in checkpoints
    at::Tensor tensor;     // as it is registered
  };

  [[noreturn]] static void refuse_call(const io::ExportedCall& call, const std::string& what) {
    throw DataError(fmt::format("{}{}: {}",
                                printable(call.target),
                                call.place.empty() ? "" : " in " + printable(call.place),
                                what));
  }

  int number_of(const std::string& name) const {
    const auto found = numbers_.find(name);
    if (found == numbers_.end())
      throw DataError(fmt::format("the value '{}' is used before it is made", printable(name)));
    return found->second;
  }
  int new_number(const std::string& name) {
    const auto number = static_cast<int>(to_.initial_.size());
    if (!name.empty() && !numbers_.emplace(name, number).second)
      throw DataError(fmt::format("the value '{}' is made twice", printable(name)));
    to_.initial_.emplace_back();
    return number;
  }

  void add_input(const Input& input) {
    if (input.kind == Input::Kind::user) {
      to_.inputs_.push_back(new_number(input.value));
      return;
    }
    const auto alias = graph_.aliases.find(input.target);
    const std::string& name = alias == graph_.aliases.end() ? input.target : alias->second;
    const auto same = named_.find(name);
    if (same != named_.end()) {  // a tensor that modules share
      if (!numbers_.emplace(input.value, same->second).second)
        throw DataError(fmt::format("the value '{}' is made twice", printable(input.value)));
      return;
    }
    const int number = new_number(input.value);
    named_[name] = number;
    const bool is_constant = input.kind == Input::Kind::constant || !input.is_persistent;
    tensors_[number] = {
        input.kind, name, is_constant ? fmt::format("constant_{}", constants_++) : "", {}};
  }

  void read_calls() {
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
        if (starts_with(call.target, "torch.ops.aten.sym_constrain_range") ||
            starts_with(call.target, "torch.ops.aten._assert_tensor_metadata"))
          continue;
        if (symbol_inputs(call.target) > 0) {
          for (const io::ExportedArgument& input : call.inputs)
            if (input.kind == io::ExportedArgument::Kind::value) note(input.text);
        } else {
          read.op.emplace(call, note);
        }
        for (const io::ExportedArgument& output : call.outputs) add_results(output, read);
      } catch (const DataError& error) {
        refuse_call(call, error.what());
      }
      read.reads.assign(reads.begin(), reads.end());
      for (const int number : read.reads) readers_[number].push_back(calls_.size());
      for (const int number : read.writes)
        if (number >= 0) makers_[number] = calls_.size();
      is_of_training_mode_ = is_of_training_mode_ || (read.op && trains(*read.op));
      calls_.push_back(std::move(read));
    }
    for (const io::ExportedOutput& output : graph_.outputs)
      if (output.argument.kind == io::ExportedArgument::Kind::value)
        results_.insert(number_of(output.argument.text));
  }
  void expect_all_inputs_read() const {
    for (std::size_t i = 0; i < to_.inputs_.size(); ++i) {
      if (readers_.count(to_.inputs_[i]) > 0) continue;
      throw DataError(
          fmt::format("forward() does not use its tensor {} of {}; where one tensor is the example "
                      "of several, torch.export takes them for one",
                      i + 1,
                      to_.inputs_.size()));
    }
  }
  void add_results(const io::ExportedArgument& output, Call& call) {
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

  void find_shared_memory() {
    memory_.emplace(to_.initial_.size());
    for (const Call& call : calls_)
      if (call.op) memory_->note(*call.op, call.reads, call.writes);
    to_.is_row_major_ = memory_->needs_row_major();
    for (const int input : to_.inputs_)
      to_.changes_in_place_ = to_.changes_in_place_ || memory_->is_changed(input);
  }

  // --- which layer or operation a call becomes -------------------------------------------------

  /// What our form of an operator is made by, and the arguments that it reads: tensors, which the
  /// others may be or not. Sizes that only an image tells are checked by src/ops, as it runs.
  struct OwnForm {
    bool (ExportedCompiler::*add)(Call& call);
    std::vector<const char*> tensors, others;
  };
  /// The operators that have a form of ours: none is made but for a row of this table.
  static const std::map<std::string, OwnForm>& own_forms() {
    using C = ExportedCompiler;
    static const std::map<std::string, OwnForm> all = [] {
      std::map<std::string, OwnForm> forms{{"add_", {&C::drop_count, {"self"}, {}}}};
      for (const char* name : {"conv2d", "conv3d", "conv_transpose2d", "conv_transpose3d"})
        forms[name] = {&C::add_convolution, {"input", "weight"}, {"bias"}};
      for (const char* name : {"batch_norm", "instance_norm"})
        forms[name] = {&C::add_norm, {"input"}, {"weight", "bias", "running_mean", "running_var"}};
      for (const char* name : {"group_norm", "layer_norm"})
        forms[name] = {&C::add_norm, {"input"}, {"weight", "bias"}};
      for (const char* name : {"dropout", "feature_dropout"}) {
        forms[name] = {&C::add_dropout, {"input"}, {}};
        forms[std::string(name) + "_"] = {&C::add_dropout, {"self"}, {}};
      }
      for (const char* name : {"bernoulli", "bernoulli_"})
        forms[name] = {&C::add_noise, {"self"}, {}};
      for (const char* name : {"relu", "silu", "leaky_relu", "elu", "gelu"})
        for (const char* in_place : {"", "_"})
          forms[std::string(name) + in_place] = {&C::add_activation, {"self"}, {}};
      return forms;
    }();
    return all;
  }
  /// Throws: DataError for a number where a tensor is read, which has no place among the values.
  static void expect_operands(const OperatorCall& op, const OwnForm& form) {
    const auto expect = [&](const char* name, bool may_be_none) {
      const ArgumentSource& source = op.argument(name);
      if (source.value >= 0 || (may_be_none && source.is_constant() && source.constant.isNone()))
        return;
      throw DataError(fmt::format("its argument '{}' is no tensor of the graph", name));
    };
    for (const char* name : form.tensors) expect(name, false);
    for (const char* name : form.others) expect(name, true);
  }

  void add(std::size_t index) {
    Call& call = calls_[index];
    if (call.is_done) return;
    try {
      if (!call.op) return add_symbol(call);
      const auto own = own_forms().find(call.op->short_name());
      if (own != own_forms().end()) expect_operands(*call.op, own->second);
      keep_norms_whole(call);
      if (own != own_forms().end() && (this->*own->second.add)(call)) return;
      if (!add_power_iteration(call)) add_operator(call);
    } catch (const DataError& error) {
      refuse_call(*call.source, error.what());
    }
  }

  /// The number that a value has now: an operation in place may have become one that makes another.
  int now(int number) const {
    for (auto found = replaced_.find(number); found != replaced_.end();
         found = replaced_.find(number))
      number = found->second;
    return number;
  }
  /// The tensor of the file that a value is; null: it is computed.
  const Tensor* tensor_at(int number) const {
    const auto found = tensors_.find(number);
    return found == tensors_.end() ? nullptr : &found->second;
  }

  ExportedStep& push(const Call& call,
                     std::function<void(Values&, c10::Device)> run,
                     std::vector<int> reads,
                     std::vector<int> writes) {
    for (int& number : reads) number = now(number);
    if (call.source->is_outside_autocast) run = outside_autocast(std::move(run));
    // Weights whose channels come last turn the order of an image's.
    if (to_.is_row_major_ && call.op && starts_with(call.op->short_name(), "conv"))
      run = [run = std::move(run), to = writes.at(0)](Values& values, c10::Device device) {
        run(values, device);
        at(values, to) = at(values, to).toTensor().contiguous();
      };
    ExportedStep step{std::move(run), std::move(reads), std::move(writes), {}, ""};
    step.name =
        call.source->target + (call.source->place.empty() ? "" : " in " + call.source->place);
    to_.steps_.push_back(std::move(step));
    return to_.steps_.back();
  }

  void add_symbol(const Call& call) {
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
    if (const std::size_t inputs = symbol_inputs(call.source->target); sources.size() != inputs)
      throw DataError(fmt::format("it is given {} numbers, expected {}", sources.size(), inputs));
    push(
        call,
        [sources, function = call.source->target, to = call.writes[0]](Values& values,
                                                                       c10::Device) {
          std::vector<c10::IValue> inputs;
          for (const ArgumentSource& source : sources)
            inputs.push_back(source.value >= 0 ? values[static_cast<std::size_t>(source.value)]
                                               : source.constant);
          values[static_cast<std::size_t>(to)] = compute_symbol(function, inputs);
        },
        call.reads,
        call.writes)
        .gives_numbers = true;
  }

  /// A batch norm's count of batches, which the layer does itself, and evaluation does not.
  bool drop_count(Call& call) {
    const int self = now(call.op->value("self"));
    const Tensor* const buffer = tensor_at(self);
    if (buffer == nullptr || buffer->kind != Input::Kind::buffer ||
        !ends_with(buffer->name, "num_batches_tracked"))
      return false;
    replaced_[call.writes.at(0)] = self;
    return true;
  }

  /// Whether a call follows train() and eval().
  bool follows(const Call& call) const {
    return has_mode(*call.op) && (trains(*call.op) || !is_of_training_mode_);
  }

  std::optional<std::string> parameter_name(int number, const std::string& last) const {
    const Tensor* const tensor = number < 0 ? nullptr : tensor_at(number);
    if (tensor == nullptr || tensor->kind == Input::Kind::constant) return {};
    if (!ends_with(tensor->name, "." + last)) return {};
    return tensor->name.substr(0, tensor->name.size() - last.size() - 1);
  }
  /// Whether all readers of a value call this operator.
  bool is_read_by(int number, const std::string& op) const {
    const auto found = readers_.find(number);
    return found != readers_.end() &&
           std::all_of(found->second.begin(), found->second.end(), [&](std::size_t reader) {
             return calls_[reader].op && calls_[reader].op->short_name() == op;
           });
  }

  /// The layer at `name`: the one that is there with the same options, or a new one; null where
  /// something else has the name.
  template <class L>
  std::shared_ptr<L> layer_at(const std::string& name,
                              const std::string& options,
                              const std::function<std::shared_ptr<L>()>& make) {
    const auto found = layers_.find(name);
    if (found != layers_.end()) {
      return found->second.second == options ? std::dynamic_pointer_cast<L>(found->second.first)
                                             : nullptr;
    }
    torch::nn::Module& parent = parent_of(root_, name);
    const std::string last = name.substr(name.rfind('.') + 1);
    if (parent.named_children().contains(last) || last.empty()) return nullptr;
    auto layer = parent.register_module(last, make());
    layers_[name] = {layer, options};
    return layer;
  }
  /// Puts the file's values into a layer's tensor, which then is the graph's.
  void adopt(at::Tensor& into, int number) {
    Tensor& tensor = tensors_.at(number);
    if (tensor.tensor.defined()) return;
    into.set_data(values_of(tensor));
    tensor.tensor = into;
    to_.initial_[static_cast<std::size_t>(number)] = into;
  }
  at::Tensor values_of(const Tensor& tensor) const {
    at::Tensor values = tensor_(tensor.name);
    if (!values.defined() && !tensor.saved_as.empty())
      values = tensor_(kGraphModule + tensor.saved_as);
    if (!values.defined())
      throw DataError(fmt::format("the file has no tensor '{}'", printable(tensor.name)));
    return values;
  }

  bool add_convolution(Call& call) {
    const OperatorCall& op = *call.op;
    if (op.overload() == "padding") return false;
    const std::size_t count = op.short_name().find("3d") == std::string::npos ? 2 : 3;
    const bool transposed = starts_with(op.short_name(), "conv_transpose");
    const auto stride = op.whole_numbers("stride", count);
    const auto padding = op.whole_numbers("padding", count);
    const auto dilation = op.whole_numbers("dilation", count);
    const auto output_padding =
        transposed ? op.whole_numbers("output_padding", count) : Sizes(count, 0);
    const auto groups = op.whole("groups");
    const int x = op.value("input"), w = op.value("weight"), b = op.value("bias");
    if (!stride || !padding || !dilation || !output_padding || !groups) return false;
    if (auto layer = convolution_layer(
            call,
            {{}, *stride, b >= 0, transposed, *padding, *groups, {}, *output_padding, *dilation})) {
      push(
          call,
          [layer, from = now(x), to = call.writes.at(0)](Values& values, c10::Device) {
            at(values, to) = nn::call(*layer, at(values, from).toTensor());
          },
          {x},
          call.writes);
      return true;
    }
    push(
        call,
        [=,
         is_parameter = tensor_at(now(w)) != nullptr,
         from = now(x),
         weight = now(w),
         bias = b < 0 ? -1 : now(b),
         to = call.writes.at(0)](Values& values, c10::Device) {
          at(values, to) = ops::convolution(
              at(values, from).toTensor(),
              at(values, weight).toTensor(),
              bias < 0 ? at::Tensor() : at(values, bias).toTensor(),
              {*stride, *padding, *dilation, transposed, *output_padding, *groups, is_parameter});
        },
        call.reads,
        call.writes);
    return true;
  }
  /// The layer of a convolution whose weights nothing else reads; null: it is none.
  std::shared_ptr<Conv> convolution_layer(const Call& call, ConvOptions options) {
    const int w = call.op->value("weight"), b = call.op->value("bias");
    const auto name = parameter_name(w, "weight");
    if (!name || !is_read_by(w, call.op->short_name())) return nullptr;
    if (b >= 0 && (parameter_name(b, "bias") != name || !is_read_by(b, call.op->short_name())))
      return nullptr;
    const at::Tensor weight = values_of(tensors_.at(w));
    if (weight.dim() != static_cast<int64_t>(options.stride.size()) + 2 || weight.numel() == 0 ||
        options.groups < 1)
      throw DataError("its weights have no values, or another number of dimensions");
    options.kernel = weight.sizes().slice(2).vec();
    if (options.groups > weight.size(0)) throw DataError("it has more groups than channels");
    const int64_t in = options.transposed ? weight.size(0) : weight.size(1) * options.groups;
    const int64_t out = options.transposed ? weight.size(1) * options.groups : weight.size(0);
    if (b >= 0 && values_of(tensors_.at(b)).numel() != out)
      throw DataError("its bias has another number of channels than its weights");
    const std::string text = fmt::format("{} {} {} {} {} {} {}",
                                         fmt::join(options.stride, ","),
                                         fmt::join(options.padding, ","),
                                         fmt::join(options.dilation, ","),
                                         fmt::join(options.output_padding, ","),
                                         options.groups,
                                         options.transposed,
                                         options.bias);
    auto layer =
        layer_at<Conv>(*name, text, [&] { return std::make_shared<Conv>(in, out, options); });
    if (layer == nullptr) return nullptr;
    adopt(layer->weight, w);
    if (b >= 0) adopt(layer->bias, b);
    return layer;
  }

  /// The activation that the call's result gets, where it is the result's only reader or changes
  /// it in place before any other does: the call then computes it, too.
  ops::Activation take_following(const Call& call) {
    const int number = call.writes.at(0);
    const auto found = readers_.find(number);
    if (found == readers_.end()) return {};
    Call& next = calls_[found->second.front()];
    if (!next.op || next.reads.size() != 1 || next.writes.size() != 1) return {};
    const auto activation = activation_of(*next.op);
    const bool is_only = found->second.size() == 1 && results_.count(number) == 0;
    if (!activation || (!is_only && !next.op->changes_first())) return {};
    next.is_done = true;
    replaced_[next.writes[0]] = number;
    memory_->join(number, next.writes[0]);
    return *activation;
  }

  /// A norm of an image by its weight and bias, which may be undefined.
  using Normalise = std::function<at::Tensor(
      const at::Tensor& x, const at::Tensor& w, const at::Tensor& b, const ops::Activation&)>;

  /// The norm that a call computes; null: none of Cytra's.
  Normalise norm_of(const Call& call, double eps) {
    const OperatorCall& op = *call.op;
    const std::string name = op.short_name();
    using T = at::Tensor;
    using A = ops::Activation;
    if (name == "batch_norm") {
      const std::shared_ptr<Norm> layer = batch_norm_layer(call, eps);
      if (layer == nullptr) return {};
      return [layer](const T& x, const T&, const T&, const A& a) { return nn::call(*layer, x, a); };
    }
    if (name == "instance_norm") {
      if (op.value("running_mean") >= 0 || !op.flag("use_input_stats").value_or(false)) return {};
      return [eps](const T& x, const T& w, const T& b, const A& a) {
        return ops::instance_norm(x, w, b, eps, a);
      };
    }
    if (name == "group_norm") {
      const auto groups = op.whole("num_groups");
      if (!groups) return {};
      return [eps, groups = *groups](const T& x, const T& w, const T& b, const A& a) {
        return ops::group_norm(x, groups, w, b, eps, a);
      };
    }
    const ArgumentSource& shape = op.argument("normalized_shape");
    if (!shape.is_constant() || !shape.constant.isIntList()) return {};
    return [eps, sides = shape.constant.toIntVector()](
               const T& x, const T& w, const T& b, const A& a) {
      return ops::layer_norm(x, sides, w, b, eps, a);
    };
  }

  bool add_norm(Call& call) {
    const OperatorCall& op = *call.op;
    const int x = op.value("input");
    const auto eps = op.real("eps");
    if (!eps) return false;
    Normalise normalise = norm_of(call, *eps);
    if (!normalise) {
      if (takes_batch_statistics(call))
        to_.foreign_batch_norms_.push_back(printable(call.source->place));
      return false;
    }
    const auto now_or_none = [this](int number) { return number < 0 ? -1 : now(number); };
    const int to = call.writes.at(0);
    const ops::Activation following = take_following(call);
    const bool is_changed_with_views = memory_->is_changed_with_views(to);
    if (!is_changed_with_views) norms_.insert(to);
    push(
        call,
        [normalise = std::move(normalise),
         activation = following,
         is_changed_with_views,
         from = now(x),
         w = now_or_none(op.value("weight")),
         b = now_or_none(op.value("bias")),
         to](Values& values, c10::Device) {
          const auto tensor = [&](int number) {
            return number < 0 ? at::Tensor() : at(values, number).toTensor();
          };
          at::Tensor y = normalise(at(values, from).toTensor(), tensor(w), tensor(b), activation);
          // The backward pass may need the result as it is now.
          at(values, to) = is_changed_with_views && y.requires_grad() ? y.clone() : std::move(y);
        },
        call.reads,
        call.writes);
    return true;
  }

  /// Whether a call is a batch norm that, while it trains, uses the batch.
  bool takes_batch_statistics(const Call& call) const {
    const OperatorCall& op = *call.op;
    if (op.short_name() != "batch_norm") return false;
    return op.value("running_mean") < 0 ? op.flag("training").value_or(true) : follows(call);
  }

  /// The layer of a batch norm that trains by the batch, with running statistics or without; null:
  /// it is none.
  std::shared_ptr<Norm> batch_norm_layer(const Call& call, double eps) {
    const OperatorCall& op = *call.op;
    const int mean = op.value("running_mean"), variance = op.value("running_var");
    const int w = op.value("weight"), b = op.value("bias");
    const auto momentum = op.real("momentum");
    if (!takes_batch_statistics(call) || !momentum || (w < 0) != (b < 0) ||
        (mean < 0) != (variance < 0))
      return nullptr;
    const int first = mean >= 0 ? mean : w;
    const auto name = first < 0 ? std::optional(fmt::format("batch_norm_{}", batch_norms_++))
                                : parameter_name(first, mean >= 0 ? "running_mean" : "weight");
    if (!name || (mean >= 0 && parameter_name(variance, "running_var") != name)) return nullptr;
    if (w >= 0 && (parameter_name(w, "weight") != name || parameter_name(b, "bias") != name))
      return nullptr;
    NormOptions options;
    options.kind = "batch";
    options.affine = w >= 0;
    options.eps = eps;
    options.momentum = *momentum;
    options.track_running_stats = mean >= 0;
    const int64_t channels = first < 0 ? 0 : values_of(tensors_.at(first)).numel();
    for (const int number : {variance, w, b})
      if (number >= 0 && values_of(tensors_.at(number)).numel() != channels)
        throw DataError("its weights and running statistics have other numbers of channels");
    const std::string text = fmt::format("{} {} {} {}", eps, *momentum, w >= 0, mean >= 0);
    auto layer =
        layer_at<Norm>(*name, text, [&] { return std::make_shared<Norm>(options, channels); });
    if (layer == nullptr) return nullptr;
    if (w >= 0) {
      adopt(layer->weight, w);
      adopt(layer->bias, b);
    }
    if (mean < 0) return layer;
    auto buffers = layer->named_buffers(false);
    adopt(buffers["running_mean"], mean);
    adopt(buffers["running_var"], variance);
    const auto batches = named_.find(*name + ".num_batches_tracked");
    if (batches != named_.end()) adopt(buffers["num_batches_tracked"], batches->second);
    return layer;
  }

  bool add_dropout(Call& call) {
    const OperatorCall& op = *call.op;
    const bool of_channels = starts_with(op.short_name(), "feature_dropout");
    if (!follows(call)) return false;
    const auto p = op.real("p");
    if (!p) return false;
    const int x = first_value(op);  // `input`, in place `self`
    if (*p == 0) {
      replaced_[call.writes.at(0)] = now(x);
      return true;
    }
    if (!(*p > 0 && *p <= 1)) throw DataError("a dropout of another share than 0 to 1");
    to_.random_parts_.insert(op.short_name());
    const std::string at_name = fmt::format("dropout_{}", dropouts_++);
    auto layer =
        layer_at<Dropout>(at_name, "", [&] { return std::make_shared<Dropout>(*p, of_channels); });
    if (layer == nullptr) return false;
    const int to = call.writes.at(0);
    const bool is_seen_by_views = op.changes_first() && memory_->is_changed_with_views(x);
    push(
        call,
        [layer, is_seen_by_views, from = now(x), to](Values& values, c10::Device) {
          at::Tensor& target = at(values, from).toTensor();
          at::Tensor dropped = nn::call(*layer, target);
          at(values, to) =
              is_seen_by_views && !dropped.is_same(target) ? target.copy_(dropped) : dropped;
        },
        call.reads,
        call.writes)
        .changes = is_seen_by_views ? x : -1;
    if (op.changes_first()) replaced_[x] = to;
    return true;
  }

  /// bernoulli_(p) and bernoulli(x, p): p in evaluation.
  bool add_noise(Call& call) {
    const OperatorCall& op = *call.op;
    if (op.overload() != (op.changes_first() ? "float" : "p")) return false;
    const auto p = op.real("p");
    if (!p) return false;
    if (!(*p >= 0 && *p <= 1)) throw DataError("noise of another share than 0 to 1");
    const int x = op.value("self"), to = call.writes.at(0);
    to_.random_parts_.insert(op.short_name());
    push(
        call,
        [this_root = &root_, from = now(x), to, p = *p, in_place = op.changes_first()](
            Values& values, c10::Device) {
          const at::Tensor& target = at(values, from).toTensor();
          if (drops(1 - p, this_root->is_training())) {
            at(values, to) = in_place ? at::Tensor(target).bernoulli_(p) : target.bernoulli(p);
          } else {
            at(values, to) = in_place ? at::Tensor(target).fill_(p) : at::full_like(target, p);
          }
        },
        call.reads,
        call.writes)
        .changes = op.changes_first() ? x : -1;
    return true;
  }

  /// An activation of a result that nothing else needs: in its memory where the derivative allows.
  bool add_activation(Call& call) {
    if (call.reads.size() != 1 || call.writes.size() != 1) return false;
    const auto activation = activation_of(*call.op);
    if (!activation) return false;
    using A = ops::Activation;
    const int x = call.reads[0], to = call.writes[0];
    const auto maker = makers_.find(x);
    static const std::set<std::string> kKeepNoResult{
        "add", "sub", "cat", "conv2d", "conv3d", "conv_transpose2d", "conv_transpose3d"};
    const bool is_only = readers_.at(x).size() == 1 && results_.count(x) == 0;
    const bool is_free = is_only && maker != makers_.end() && calls_[maker->second].op &&
                         kKeepNoResult.count(calls_[maker->second].op->short_name()) > 0 &&
                         norms_.count(now(x)) == 0 &&
                         (call.op->changes_first() || !memory_->is_changed(to));
    const bool can_change = activation->kind == A::kRelu ||
                            (activation->kind == A::kLeakyRelu && activation->slope >= 0);
    const bool is_in_place = call.op->changes_first();
    if (is_in_place && !(is_free && can_change) && norms_.count(now(x)) == 0) return false;
    push(
        call,
        [a = *activation, from = now(x), to, in_place = is_free && can_change](Values& values,
                                                                               c10::Device) {
          at::Tensor input = at(values, from).toTensor();
          if (!in_place) {
            at(values, to) = ops::activate(input, a);
          } else {
            at(values, to) =
                a.kind == A::kRelu ? at::relu_(input) : at::leaky_relu_(input, a.slope);
          }
        },
        call.reads,
        call.writes)
        .changes = is_free && can_change ? x : -1;
    if (is_in_place) replaced_[x] = to;
    return true;
  }

  /// What would change a norm's result in place makes another: the result may be kept for the
  /// backward pass.
  void keep_norms_whole(Call& call) {
    OperatorCall& op = *call.op;
    const int x = first_value(op);
    if (!op.changes_first() || x < 0 || norms_.count(now(x)) == 0 || activation_of(op)) return;
    std::string name = op.name();
    name.pop_back();
    op.become(name);
    call.is_of_norm = true;
  }

  /// A step of spectral_norm's power iteration, which changes its buffers in training alone.
  bool add_power_iteration(const Call& call) {
    OperatorCall op = *call.op;
    if (!op.has("out") || op.value("out") < 0 || call.writes.at(0) < 0) return false;
    const int out = op.value("out"), to = call.writes.at(0);
    const bool is_of_iteration =
        std::any_of(tensors_.begin(), tensors_.end(), [&](const auto& tensor) {
          const auto& [number, known] = tensor;
          return memory_->of(number) == memory_->of(out) && known.kind == Input::Kind::buffer &&
                 (ends_with(known.name, "_u") || ends_with(known.name, "_v"));
        });
    if (!is_of_iteration) return false;
    op.rename_values([this](int number) { return now(number); });
    push(
        call,
        [op, root = &root_, from = now(out), to](Values& values, c10::Device device) {
          at(values, to) = at(values, from);
          if (!root->is_training()) return;
          const at::NoGradGuard no_grad;
          torch::jit::Stack stack;
          op.run(values, device, stack);
        },
        call.reads,
        call.writes)
        .changes = out;
    return true;
  }

  void add_operator(const Call& call) {
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
    ExportedStep& step = push(
        call,
        [op, in_evaluation, root = &root_, is_list = call.gives_list, writes = call.writes](
            Values& values, c10::Device device) {
          torch::jit::Stack stack;
          const bool evaluates = in_evaluation && !root->is_training();
          (evaluates ? *in_evaluation : op).run(values, device, stack);
          store(stack, is_list, writes, values);
        },
        call.reads,
        call.writes);
    step.changes = changes(op) ? first_value(*call.op) : -1;
    step.gives_numbers = op.gives_numbers();
    if (call.is_of_norm) replaced_[first_value(*call.op)] = call.writes.at(0);
  }

  static void store(torch::jit::Stack& stack,
                    bool is_list,
                    const std::vector<int>& writes,
                    Values& values) {
    if (is_list) {
      if (stack.size() != 1 || !stack[0].isTensorList())
        throw DataError("it gives no list of tensors");
      const std::vector<at::Tensor> tensors = stack[0].toTensorVector();
      if (tensors.size() != writes.size())
        throw DataError(
            fmt::format("it gives {} tensors, expected {}", tensors.size(), writes.size()));
      for (std::size_t i = 0; i < writes.size(); ++i)
        if (writes[i] >= 0) at(values, writes[i]) = tensors[i];
      return;
    }
    if (stack.size() < writes.size()) throw DataError("it gives fewer results than expected");
    for (std::size_t i = 0; i < writes.size(); ++i)
      if (writes[i] >= 0) at(values, writes[i]) = std::move(stack[i]);
  }

  // --- the tensors that no layer has taken ------------------------------------------------------

  void register_rest() {
    auto constants = std::make_shared<torch::nn::Module>();
    for (auto& [number, tensor] : tensors_) {
      if (tensor.tensor.defined()) continue;
      if (!tensor.saved_as.empty()) {
        tensor.tensor = constants->register_buffer(tensor.saved_as, values_of(tensor));
      } else {
        tensor.tensor = register_tensor(tensor);
      }
      to_.initial_[static_cast<std::size_t>(number)] = tensor.tensor;
    }
    to_.constants_ = std::move(constants);
  }
  at::Tensor register_tensor(const Tensor& tensor) {
    const at::Tensor values = values_of(tensor);
    torch::nn::Module& parent = parent_of(root_, tensor.name);
    const std::string last = tensor.name.substr(tensor.name.rfind('.') + 1);
    if (last.empty() || parent.named_parameters(false).contains(last) ||
        parent.named_buffers(false).contains(last))
      throw DataError(fmt::format("two tensors have the name '{}'", printable(tensor.name)));
    if (tensor.kind == Input::Kind::parameter && values.is_floating_point())
      return parent.register_parameter(last, values);
    return parent.register_buffer(last, values);
  }

  void add_output(const io::ExportedOutput& output) {
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

  void note_last_reads() {
    std::set<int> needed(to_.results_.begin(), to_.results_.end());
    for (const auto& [buffer, content] : to_.mutations_) needed.insert(content);
    for (const auto& [number, tensor] : tensors_) needed.insert(number);
    for (auto step = to_.steps_.rbegin(); step != to_.steps_.rend(); ++step) {
      for (const int number : step->reads)
        if (needed.insert(number).second) step->last.push_back(number);
      for (const int number : step->writes)
        if (number >= 0 && needed.count(number) == 0) step->last.push_back(number);
    }
  }

  void say_what_stays() {
    int64_t with_mode = 0, frozen = 0;
    for (const Call& call : calls_) {
      if (!call.op || !has_mode(*call.op)) continue;
      ++with_mode;
      frozen += call.op->short_name() == "batch_norm" && !follows(call) ? 1 : 0;
    }
    if (with_mode > 0 && !is_of_training_mode_)
      to_.remarks_.emplace_back(
          "it was exported in evaluation mode: what its Python does in training alone is not in "
          "the "
          "file; dropouts and batch norms that are there train");
    if (frozen > 0)
      to_.remarks_.push_back(fmt::format("{} batch norms are frozen in the file", frozen));
    if (!random_.empty())
      to_.remarks_.push_back(
          fmt::format("it draws random numbers in evaluation, too ({})", fmt::join(random_, ", ")));
  }

  static c10::IValue& at(Values& values, int number) {
    return values[static_cast<std::size_t>(number)];
  }

  const io::ExportedGraph& graph_;
  torch::nn::Module& root_;
  const ExportedSteps::FindTensor& tensor_;
  ExportedSteps& to_;
  std::vector<Call> calls_;
  std::map<std::string, int> numbers_;
  std::map<int, Tensor> tensors_;
  std::map<std::string, int> named_;  // tensors of the file
  std::map<int, std::vector<std::size_t>> readers_;
  std::map<int, std::size_t> makers_;
  std::map<int, int> replaced_;
  std::set<int> results_, norms_;
  std::optional<SharedMemory> memory_;
  std::map<std::string, std::pair<std::shared_ptr<torch::nn::Module>, std::string>> layers_;
  std::set<std::string> random_;
  int64_t dropouts_ = 0, constants_ = 0, batch_norms_ = 0;
  bool is_of_training_mode_ = false;  // one of the calls is
};

ExportedSteps::ExportedSteps(const io::ExportedGraph& graph,
                             torch::nn::Module& root,
                             const FindTensor& tensor)
    : root_(root) {
  ExportedCompiler(graph, root, tensor, *this).compile();
}

}  // namespace cytra::nn
