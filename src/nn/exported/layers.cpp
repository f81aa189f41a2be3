// Part of nn/exported/compiler.h: convolutions, norms and dropouts, which become Cytra's.
#include <algorithm>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/strings.h"
#include "nn/exported/compiler.h"
#include "nn/exported/modes.h"
#include "ops/conv/conv.h"

namespace cytra::nn {

std::optional<std::string> ExportedCompiler::parameter_name(int number,
                                                            const std::string& last) const {
  if (number < 0) return {};
  const std::optional<Tensor>& tensor = value(number).tensor;
  if (!tensor || tensor->kind == Input::Kind::constant) return {};
  if (!tensor->name.ends_with("." + last)) return {};
  return tensor->name.substr(0, tensor->name.size() - last.size() - 1);
}

bool ExportedCompiler::is_read_by(int number, const std::string& op) const {
  const std::vector<std::size_t>& readers = value(number).readers;
  return std::ranges::all_of(readers, [&](std::size_t reader) {
    return calls_[reader].op && calls_[reader].op->short_name() == op;
  });
}

template <class L>
std::shared_ptr<L> ExportedCompiler::layer_at(const std::string& name,
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

void ExportedCompiler::adopt(at::Tensor& into, int number) {
  Tensor& tensor = value(number).tensor.value();
  if (tensor.tensor.defined()) return;
  into.set_data(values_of(tensor));
  tensor.tensor = into;
  to_.initial_[static_cast<std::size_t>(number)] = into;
}

bool ExportedCompiler::add_convolution(Call& call) {
  const OperatorCall& op = *call.op;
  if (op.overload() == "padding") return false;
  const std::size_t count = op.short_name().find("3d") == std::string::npos ? 2 : 3;
  const bool transposed = op.short_name().starts_with("conv_transpose");
  const auto stride = op.whole_numbers("stride", count);
  const auto padding = op.whole_numbers("padding", count);
  const auto dilation = op.whole_numbers("dilation", count);
  const auto output_padding =
      transposed ? op.whole_numbers("output_padding", count) : Sizes(count, 0);
  const auto groups = op.whole("groups");
  const int x = op.value("input"), w = op.value("weight"), b = op.value("bias");
  if (!stride || !padding || !dilation || !output_padding || !groups) return false;
  const auto layer = convolution_layer(
      call, {{}, *stride, b >= 0, transposed, *padding, *groups, {}, *output_padding, *dilation});
  push(call,
       [=,
        is_parameter = value(now(w)).tensor.has_value(),
        from = now(x),
        weight = now(w),
        bias = b < 0 ? -1 : now(b),
        to = call.writes.at(0)](Values& values, c10::Device) {
         const at::Tensor& image = at(values, from).toTensor();
         at(values, to) =
             layer ? nn::call(*layer, image)
                   : ops::convolution(image,
                                      at(values, weight).toTensor(),
                                      bias < 0 ? at::Tensor() : at(values, bias).toTensor(),
                                      {*stride,
                                       *padding,
                                       *dilation,
                                       transposed,
                                       *output_padding,
                                       *groups,
                                       is_parameter});
       });
  return true;
}

std::shared_ptr<Conv> ExportedCompiler::convolution_layer(const Call& call, ConvOptions options) {
  const int w = call.op->value("weight"), b = call.op->value("bias");
  const auto name = parameter_name(w, "weight");
  if (!name || !is_read_by(w, call.op->short_name())) return nullptr;
  if (b >= 0 && (parameter_name(b, "bias") != name || !is_read_by(b, call.op->short_name())))
    return nullptr;
  const at::Tensor weight = values_of(*value(w).tensor);
  if (weight.dim() != std::ssize(options.stride) + 2 || weight.numel() == 0 || options.groups < 1)
    throw DataError("its weights have no values, or another number of dimensions");
  options.kernel = weight.sizes().slice(2).vec();
  if (options.groups > weight.size(0)) throw DataError("it has more groups than channels");
  const int64_t in = options.transposed ? weight.size(0) : weight.size(1) * options.groups;
  const int64_t out = options.transposed ? weight.size(1) * options.groups : weight.size(0);
  if (b >= 0 && values_of(*value(b).tensor).numel() != out)
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

ops::Activation ExportedCompiler::take_following(const Call& call) {
  const int number = call.writes.at(0);
  const Value& result = value(number);
  if (result.readers.empty()) return {};
  Call& next = calls_[result.readers.front()];
  if (!next.op || next.reads.size() != 1 || next.writes.size() != 1) return {};
  const auto activation = activation_of(*next.op);
  const bool is_only = result.readers.size() == 1 && !result.is_result;
  if (!activation || (!is_only && !next.op->changes_first())) return {};
  next.is_done = true;
  value(next.writes[0]).replaced = number;
  memory_->join(number, next.writes[0]);
  return *activation;
}

ExportedCompiler::Normalise ExportedCompiler::norm_of(const Call& call, double eps) {
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
  return
      [eps, sides = shape.constant.toIntVector()](const T& x, const T& w, const T& b, const A& a) {
        return ops::layer_norm(x, sides, w, b, eps, a);
      };
}

bool ExportedCompiler::add_norm(Call& call) {
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
  value(to).is_of_norm = !is_changed_with_views;
  push(call,
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
       });
  return true;
}

bool ExportedCompiler::takes_batch_statistics(const Call& call) const {
  const OperatorCall& op = *call.op;
  if (op.short_name() != "batch_norm") return false;
  return op.value("running_mean") < 0 ? op.flag("training").value_or(true) : follows(call);
}

std::shared_ptr<Norm> ExportedCompiler::batch_norm_layer(const Call& call, double eps) {
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
  const int64_t channels = first < 0 ? 0 : values_of(*value(first).tensor).numel();
  for (const int number : {variance, w, b})
    if (number >= 0 && values_of(*value(number).tensor).numel() != channels)
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

bool ExportedCompiler::add_dropout(Call& call) {
  const OperatorCall& op = *call.op;
  const bool of_channels = op.short_name().starts_with("feature_dropout");
  if (!follows(call)) return false;
  const auto p = op.real("p");
  if (!p) return false;
  const int x = first_value(op);  // `input`, in place `self`
  if (*p == 0) {
    value(call.writes.at(0)).replaced = now(x);
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
  push(call, [layer, is_seen_by_views, from = now(x), to](Values& values, c10::Device) {
    at::Tensor& target = at(values, from).toTensor();
    at::Tensor dropped = nn::call(*layer, target);
    at(values, to) = is_seen_by_views && !dropped.is_same(target) ? target.copy_(dropped) : dropped;
  }).changes = is_seen_by_views ? x : -1;
  if (op.changes_first()) value(x).replaced = to;
  return true;
}

}  // namespace cytra::nn
