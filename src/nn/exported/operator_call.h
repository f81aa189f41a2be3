#pragma once
// A call of one of torch's operators, as a file of torch.export describes it. Include only from
// .cpp files of nn.
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include "io/weights/exported_program.h"

namespace cytra::nn {

/// The values of a graph while it runs, by their numbers.
using Values = std::vector<c10::IValue>;

/// Where an argument comes from: a value, a constant, or a list of both.
struct ArgumentSource {
  int value = -1;        // its number; -1: none
  c10::IValue constant;  // without a value and a list
  bool is_list = false, is_device = false;
  std::vector<ArgumentSource> items;
  bool is_constant() const;
};

/// An operator with the sources of all its arguments, in its schema's order.
class OperatorCall {
 public:
  /// `number_of` gives the number of a value by its name. Throws: DataError for an operator that is
  /// not known or not allowed (nn/allowed_operators.h), for arguments that its schema lacks, and
  /// for other results than the schema's: one that is alone has a name.
  OperatorCall(const io::ExportedCall& call,
               const std::function<int(const std::string&)>& number_of);

  /// The operator's name without its library, "conv2d", and its overload, "default" as "".
  const std::string& name() const { return handle_.operator_name().name; }
  std::string short_name() const { return name().substr(name().find("::") + 2); }
  const std::string& overload() const { return handle_.operator_name().overload_name; }
  /// Whether it changes its first argument in place.
  bool changes_first() const;
  /// Whether its results are no tensors; whether they may share an argument's memory.
  bool gives_numbers() const;
  bool gives_view() const;

  const ArgumentSource& argument(const std::string& name) const;
  bool has(const std::string& name) const;
  /// The number of the value that the argument is; -1 where it is none or a constant.
  int value(const std::string& name) const { return argument(name).value; }
  /// Constants; nothing where the argument is computed.
  std::optional<bool> flag(const std::string& name) const;
  std::optional<double> real(const std::string& name) const;
  std::optional<int64_t> whole(const std::string& name) const;
  /// A list, in which one number stands for `count` of them.
  std::optional<std::vector<int64_t>> whole_numbers(const std::string& name,
                                                    std::size_t count) const;
  void set(const std::string& name, const c10::IValue& constant);

  /// Runs the operator on tensors of `device`; its results are at the end of `stack`.
  void run(const Values& values, c10::Device device, torch::jit::Stack& stack) const;
  /// The operator `name` with this one's arguments, which must fit its schema.
  void become(const std::string& name);
  /// Replaces the numbers of the values that are arguments.
  void rename_values(const std::function<int(int)>& renamed);

 private:
  std::size_t index_of(const std::string& name) const;
  c10::OperatorHandle handle_;
  std::vector<ArgumentSource> arguments_;
};

/// A function of so many numbers: _operator.add, math.trunc, torch.sym_max and their like.
struct SymbolFunction {
  std::size_t inputs;
  /// Throws: DataError where Python would fail.
  std::function<c10::IValue(const Values& inputs)> compute;
};
/// The function of Python's name, which lives as long as the program; null: none is known.
const SymbolFunction* find_symbol_function(const std::string& name);

}  // namespace cytra::nn
