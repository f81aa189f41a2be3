#include "nn/exported/operator_call.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <ATen/ATen.h>
#include <ATen/ScalarOps.h>

#include "base/error.h"
#include "base/strings.h"
#include "nn/allowed_operators.h"

namespace cytra::nn {
namespace {

using Argument = io::ExportedArgument;
using Kind = Argument::Kind;
using Numbers = std::function<int(const std::string&)>;

/// The operator that a target names, "torch.ops.aten.conv2d.default".
c10::OperatorHandle find_operator(const std::string& target) {
  constexpr std::string_view kPrefix = "torch.ops.";
  const std::string path = target.starts_with(kPrefix) ? target.substr(kPrefix.size()) : "";
  if (path.starts_with("higher_order."))
    throw DataError("{} (control flow in forward()) is not supported", printable(target));
  const std::size_t first = path.find('.'), last = path.rfind('.');
  if (first == std::string::npos || first == last)
    throw DataError("{} is no operator that a network may call", printable(target));
  const std::string library = path.substr(0, first);
  const std::string name = path.substr(first + 1, last - first - 1);
  const std::string overload = path.substr(last + 1);
  if (name.starts_with("as_strided"))
    throw DataError("{} depends on how tensors lie in memory, which differs here",
                    printable(target));
  if (library != "aten" || !is_allowed_operator(library, name))
    throw DataError("the operator {} is not one that a network may call", printable(target));
  const auto handle = c10::Dispatcher::singleton().findSchema(
      {library + "::" + name, overload == "default" ? "" : overload});
  if (!handle) throw DataError("the operator {} is not in this PyTorch", printable(target));
  return *handle;
}

const c10::Type& without_optional(const c10::Type& type) {
  return type.kind() == c10::TypeKind::OptionalType
             ? without_optional(*type.expectRef<c10::OptionalType>().getElementType())
             : type;
}

bool is_list_type(const c10::Type& type) {
  return type.kind() == c10::TypeKind::ListType;
}

c10::TypePtr element_of(const c10::Type& type) {
  return type.expectRef<c10::ListType>().getElementType();
}

/// A number as the argument's type takes it.
c10::IValue number_as(const c10::Type& type, const c10::IValue& value) {
  switch (type.kind()) {
    case c10::TypeKind::TensorType:
      if (!value.isScalar()) return value;
      return at::native::wrapped_scalar_tensor(value.toScalar());
    case c10::TypeKind::FloatType:
      return value.isInt() ? c10::IValue(static_cast<double>(value.toInt())) : value;
    case c10::TypeKind::IntType:
      return value.isBool() ? c10::IValue(static_cast<int64_t>(value.toBool())) : value;
    default:
      return value;
  }
}

bool fits(const c10::Type& type, const c10::IValue& value) {
  switch (type.kind()) {
    case c10::TypeKind::TensorType:
      return value.isTensor();
    case c10::TypeKind::FloatType:
      return value.isDouble();
    case c10::TypeKind::IntType:
    case c10::TypeKind::SymIntType:
      return value.isInt();
    case c10::TypeKind::BoolType:
      return value.isBool();
    case c10::TypeKind::NumberType:
      return value.isScalar();
    case c10::TypeKind::StringType:
      return value.isString();
    case c10::TypeKind::DeviceObjType:
      return value.isDevice();
    default:
      return false;  // generators, storages, objects: no constant of a file is one
  }
}

[[noreturn]] void throw_unfit(const c10::Argument& argument) {
  throw DataError("its argument '{}' is no {}", argument.name(), argument.type()->repr_str());
}

/// A list of values, which must fit the type of its elements.
c10::IValue list_as(const c10::Type& type,
                    const std::vector<c10::IValue>& items,
                    const c10::Argument& argument) {
  const c10::TypePtr element = element_of(type);
  const c10::Type& inner = without_optional(*element);
  const bool takes_none = element->kind() == c10::TypeKind::OptionalType;
  for (const c10::IValue& item : items)
    if (!fits(inner, item) && !(takes_none && item.isNone())) throw_unfit(argument);
  const auto typed = [&](auto list, const auto& get) {
    list.reserve(items.size());
    for (const c10::IValue& item : items) list.push_back(get(item));
    return c10::IValue(std::move(list));
  };
  switch (inner.kind()) {
    case c10::TypeKind::TensorType:
      if (takes_none) {
        return typed(c10::List<std::optional<at::Tensor>>(), [](const c10::IValue& item) {
          return item.isNone() ? std::optional<at::Tensor>() : item.toTensor();
        });
      }
      return typed(c10::List<at::Tensor>(), [](const auto& item) { return item.toTensor(); });
    case c10::TypeKind::IntType:
    case c10::TypeKind::SymIntType:
      return typed(c10::List<int64_t>(), [](const auto& item) { return item.toInt(); });
    case c10::TypeKind::FloatType:
      return typed(c10::List<double>(), [](const auto& item) { return item.toDouble(); });
    case c10::TypeKind::BoolType:
      return typed(c10::List<bool>(), [](const auto& item) { return item.toBool(); });
    case c10::TypeKind::NumberType:
      return typed(c10::List<at::Scalar>(), [](const auto& item) { return item.toScalar(); });
    default:
      throw_unfit(argument);
  }
}

ArgumentSource source_of(const Argument& argument, const Numbers& number_of) {
  const Kind kind = argument.kind;
  if (kind == Kind::other)
    throw DataError("an argument of the kind {} is not supported", printable(argument.text));
  ArgumentSource source;
  source.is_device = kind == Kind::device;
  source.is_list = kind == Kind::list;
  if (kind == Kind::value) source.value = number_of(argument.text);
  if (kind == Kind::integer || kind == Kind::scalar_type || kind == Kind::memory_format)
    source.constant = argument.integer;
  if (kind == Kind::layout) source.constant = static_cast<int64_t>(at::kStrided);
  if (kind == Kind::real) source.constant = argument.real;
  if (kind == Kind::boolean) source.constant = argument.integer != 0;
  if (kind == Kind::text) source.constant = argument.text;
  if (source.is_list)
    for (const Argument& item : argument.items) source.items.push_back(source_of(item, number_of));
  return source;
}

c10::IValue item_as(const c10::Argument& argument,
                    const c10::Type& type,
                    const ArgumentSource& source,
                    const Values& values) {
  if (source.is_list || source.is_device) throw_unfit(argument);
  const c10::IValue& given =
      source.value >= 0 ? values[static_cast<std::size_t>(source.value)] : source.constant;
  return number_as(without_optional(type), given);
}

c10::IValue value_as(const c10::Argument& argument,
                     const ArgumentSource& source,
                     const Values& values,
                     c10::Device device) {
  const c10::Type& type = without_optional(*argument.type());
  if (source.is_device) return device;
  if (source.is_list || is_list_type(type)) {
    if (!is_list_type(type)) throw_unfit(argument);
    std::vector<c10::IValue> items;
    const c10::TypePtr element = element_of(type);
    if (source.is_list) {
      for (const ArgumentSource& item : source.items)
        items.push_back(item_as(argument, *element, item, values));
    } else {
      const c10::IValue given =
          source.value >= 0 ? values[static_cast<std::size_t>(source.value)] : source.constant;
      if (given.isNone() || given.isList()) return given;
      items.assign(static_cast<std::size_t>(argument.N().value_or(1)),
                   number_as(without_optional(*element), given));
    }
    return list_as(type, items, argument);
  }
  c10::IValue value = item_as(argument, type, source, values);
  const bool is_none = value.isNone() && argument.type()->kind() == c10::TypeKind::OptionalType;
  if (!is_none && !fits(type, value)) throw_unfit(argument);
  return value;
}

/// Refuses sides that a network of images does not have, before they take the machine's memory.
void expect_moderate(const std::string& op,
                     const c10::Argument& argument,
                     const c10::IValue& value) {
  constexpr int64_t kMostValues = int64_t{1} << 31, kMostSide = int64_t{1} << 26;
  static const std::set<std::string> kSides{"size", "repeats", "output_size", "dims"};
  static const std::set<std::string> kSteps{"pad", "padding", "output_padding", "dilation"};
  static const std::set<std::string> kCounts{"aten::arange end",
                                             "aten::linspace steps",
                                             "aten::eye n",
                                             "aten::one_hot num_classes",
                                             "aten::repeat_interleave repeats"};
  int64_t values = 1;
  const bool are_sides = kSides.count(argument.name()) > 0;
  if (value.isIntList() && (are_sides || kSteps.count(argument.name()) > 0)) {
    for (const int64_t side : value.toIntVector()) {
      if (side > kMostSide || side < -kMostSide) values = kMostValues + 1;
      if (are_sides && side > 0 && values <= kMostValues) values *= side;
    }
  } else if (value.isScalar() && kCounts.count(op + " " + argument.name()) > 0) {
    if (std::abs(value.toScalar().toDouble()) > static_cast<double>(kMostSide))
      values = kMostValues + 1;
  } else if (value.isDoubleList() && argument.name() == "scale_factors") {
    for (const double factor : value.toDoubleVector())
      if (!(std::abs(factor) <= 1024)) values = kMostValues + 1;
  }
  if (values > kMostValues)
    throw DataError("it makes a tensor of more than {} values ({})", kMostValues, argument.name());
}

}  // namespace

bool ArgumentSource::is_constant() const {
  return value < 0 &&
         std::ranges::all_of(items, [](const ArgumentSource& item) { return item.is_constant(); });
}

OperatorCall::OperatorCall(const io::ExportedCall& call, const Numbers& number_of)
    : handle_(find_operator(call.target)) {
  const auto& schema = handle_.schema();
  std::vector<bool> is_given(schema.arguments().size(), false);
  arguments_.resize(schema.arguments().size());
  for (const Argument& input : call.inputs) {
    const std::size_t index = index_of(input.parameter);
    if (is_given[index]) throw DataError("{} is given '{}' twice", call.target, input.parameter);
    is_given[index] = true;
    arguments_[index] = source_of(input, number_of);
  }
  for (std::size_t i = 0; i < is_given.size(); ++i) {
    const c10::Argument& argument = schema.arguments()[i];
    if (!is_given[i]) {
      const bool is_optional = argument.type()->kind() == c10::TypeKind::OptionalType;
      if (!argument.default_value() && !is_optional)
        throw DataError("{} lacks its argument '{}'", name(), argument.name());
      if (argument.default_value()) arguments_[i].constant = *argument.default_value();
    } else if (arguments_[i].is_constant() && !arguments_[i].is_device) {
      arguments_[i].constant = value_as(argument, arguments_[i], {}, at::kCPU);
      expect_moderate(name(), argument, arguments_[i].constant);
      arguments_[i].items.clear();
      arguments_[i].is_list = false;
    }
  }
  const auto& returns = schema.returns();
  bool fits = call.outputs.size() == returns.size();
  for (std::size_t i = 0; fits && i < returns.size(); ++i) {
    const Kind kind = call.outputs[i].kind;  // none: what nothing reads of several
    fits = is_list_type(*returns[i].type())
               ? kind == Kind::list
               : kind == Kind::value || (kind == Kind::none && returns.size() > 1);
  }
  if (!fits) throw DataError("its results are not the operator's");
}

std::size_t OperatorCall::index_of(const std::string& parameter) const {
  const auto& arguments = handle_.schema().arguments();
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].name() == parameter) return i;
  throw DataError("{} has no argument '{}'", name(), printable(parameter));
}

bool OperatorCall::changes_first() const {
  const auto& arguments = handle_.schema().arguments();
  const auto* alias = arguments.empty() ? nullptr : arguments[0].alias_info();
  return alias != nullptr && alias->isWrite();
}

bool OperatorCall::gives_numbers() const {
  const auto& returns = handle_.schema().returns();
  return !returns.empty() && returns[0].type()->kind() != c10::TypeKind::TensorType &&
         !is_list_type(*returns[0].type());
}

bool OperatorCall::gives_view() const {
  const auto& returns = handle_.schema().returns();
  return std::ranges::any_of(
      returns, [](const c10::Argument& result) { return result.alias_info() != nullptr; });
}

const ArgumentSource& OperatorCall::argument(const std::string& name) const {
  return arguments_[index_of(name)];
}

bool OperatorCall::has(const std::string& name) const {
  const auto& arguments = handle_.schema().arguments();
  return std::ranges::any_of(
      arguments, [&](const c10::Argument& argument) { return argument.name() == name; });
}

std::optional<bool> OperatorCall::flag(const std::string& name) const {
  const ArgumentSource& source = argument(name);
  if (!source.is_constant() || !source.constant.isBool()) return {};
  return source.constant.toBool();
}

std::optional<double> OperatorCall::real(const std::string& name) const {
  const ArgumentSource& source = argument(name);
  if (!source.is_constant() || !source.constant.isScalar()) return {};
  return source.constant.toScalar().toDouble();
}

std::optional<int64_t> OperatorCall::whole(const std::string& name) const {
  const ArgumentSource& source = argument(name);
  if (!source.is_constant() || !source.constant.isInt()) return {};
  return source.constant.toInt();
}

std::optional<std::vector<int64_t>> OperatorCall::whole_numbers(const std::string& name,
                                                                std::size_t count) const {
  const ArgumentSource& source = argument(name);
  if (!source.is_constant() || !source.constant.isIntList()) return {};
  std::vector<int64_t> numbers = source.constant.toIntVector();
  if (numbers.size() == 1) numbers.assign(count, numbers[0]);
  if (numbers.size() != count) return {};
  return numbers;
}

void OperatorCall::set(const std::string& name, const c10::IValue& constant) {
  arguments_[index_of(name)] = ArgumentSource{-1, constant};
}

void OperatorCall::run(const Values& values, c10::Device device, torch::jit::Stack& stack) const {
  const auto& declared = handle_.schema().arguments();
  for (std::size_t i = 0; i < arguments_.size(); ++i) {
    const ArgumentSource& source = arguments_[i];
    if (source.value >= 0 && values[static_cast<std::size_t>(source.value)].isTensor() &&
        without_optional(*declared[i].type()).kind() == c10::TypeKind::TensorType) {
      stack.push_back(values[static_cast<std::size_t>(source.value)]);
    } else if (source.value < 0 && !source.is_list && !source.is_device) {
      stack.push_back(source.constant);
    } else {
      stack.push_back(value_as(declared[i], source, values, device));
      expect_moderate(name(), declared[i], stack.back());
    }
  }
  handle_.callBoxed(stack);
}

void OperatorCall::become(const std::string& name) {
  const auto other = c10::Dispatcher::singleton().findSchema({name, overload()});
  if (!other || other->schema().arguments().size() != arguments_.size())
    throw DataError("{} has no form that changes nothing in place", this->name());
  handle_ = *other;
}

namespace {

void rename_in(ArgumentSource& source, const std::function<int(int)>& renamed) {
  if (source.value >= 0) source.value = renamed(source.value);
  for (ArgumentSource& item : source.items) rename_in(item, renamed);
}

}  // namespace

void OperatorCall::rename_values(const std::function<int(int)>& renamed) {
  for (ArgumentSource& source : arguments_) rename_in(source, renamed);
}

}  // namespace cytra::nn
