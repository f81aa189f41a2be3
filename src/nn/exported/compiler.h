#pragma once
// Part of nn/exported/graph.h: what each call of a graph becomes.
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "nn/blocks/layers.h"
#include "nn/exported/graph.h"
#include "nn/exported/modes.h"
#include "nn/exported/shared_memory.h"
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
  void compile();

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
  struct Value {
    std::optional<Tensor> tensor;      // of the file; none: it is computed
    std::vector<std::size_t> readers;  // calls
    std::optional<std::size_t> maker;  // the call
    int replaced = -1;                 // the value that an operation in place made of it
    bool is_result = false, is_of_norm = false;
  };

  /// Makes the steps of a call by a form of ours; false: it has none.
  using AddForm = bool (ExportedCompiler::*)(Call& call);

  // --- compiler.cpp
  int number_of(const std::string& name) const;
  int new_number(const std::string& name);
  void add_input(const Input& input);
  void read_calls();
  void expect_all_inputs_read() const;
  void add_results(const io::ExportedArgument& output, Call& call);
  void find_shared_memory();
  /// The operators that have a form of ours. Sizes that only an image tells are checked by src/ops,
  /// as it runs.
  static std::map<std::string, AddForm> own_forms();
  void add(std::size_t index);
  /// The number that a value has now: an operation in place may have become one that makes another.
  int now(int number) const;
  Value& value(int number) { return values_.at(static_cast<std::size_t>(number)); }
  const Value& value(int number) const { return values_.at(static_cast<std::size_t>(number)); }
  at::Tensor values_of(const Tensor& tensor) const;
  /// Adds a step that reads and writes what the call does.
  ExportedStep& push(const Call& call, ExportedRun run);
  void register_rest();
  at::Tensor register_tensor(const Tensor& tensor);
  void add_output(const io::ExportedOutput& output);
  void note_last_reads();
  void say_what_stays();
  static c10::IValue& at(Values& values, int number) {
    return values[static_cast<std::size_t>(number)];
  }

  // --- layers.cpp
  std::optional<std::string> parameter_name(int number, const std::string& last) const;
  /// Whether all readers of a value call this operator.
  bool is_read_by(int number, const std::string& op) const;
  /// The layer at `name`: the one that is there with the same options, or a new one; null where
  /// something else has the name.
  template <class L>
  std::shared_ptr<L> layer_at(const std::string& name,
                              const std::string& options,
                              const std::function<std::shared_ptr<L>()>& make);
  /// Puts the file's values into a layer's tensor, which then is the graph's.
  void adopt(at::Tensor& into, int number);
  bool add_convolution(Call& call);
  /// The layer of a convolution whose weights nothing else reads; null: it is none.
  std::shared_ptr<Conv> convolution_layer(const Call& call, ConvOptions options);
  /// The activation that the call's result gets, where it is the result's only reader or changes
  /// it in place before any other does: the call then computes it, too.
  ops::Activation take_following(const Call& call);
  /// A norm of an image by its weight and bias, which may be undefined.
  using Normalise = std::function<at::Tensor(
      const at::Tensor& x, const at::Tensor& w, const at::Tensor& b, const ops::Activation&)>;
  /// The norm that a call computes; null: none of Cytra's.
  Normalise norm_of(const Call& call, double eps);
  bool add_norm(Call& call);
  /// Whether a call is a batch norm that, while it trains, uses the batch.
  bool takes_batch_statistics(const Call& call) const;
  /// The layer of a batch norm that trains by the batch, with running statistics or without; null:
  /// it is none.
  std::shared_ptr<Norm> batch_norm_layer(const Call& call, double eps);
  bool add_dropout(Call& call);

  // --- operations.cpp
  void add_symbol(const Call& call);
  /// A batch norm's count of batches, which the layer does itself, and evaluation does not.
  bool drop_count(Call& call);
  /// Whether a call follows train() and eval().
  bool follows(const Call& call) const;
  /// bernoulli_(p) and bernoulli(x, p): p in evaluation.
  bool add_noise(Call& call);
  /// An activation of a result that nothing else needs: in its memory where the derivative allows.
  bool add_activation(Call& call);
  /// What would change a norm's result in place makes another: the result may be kept for the
  /// backward pass.
  void keep_norms_whole(Call& call);
  /// A step of spectral_norm's power iteration, which changes its buffers in training alone.
  bool add_power_iteration(const Call& call);
  void add_operator(const Call& call);

  const io::ExportedGraph& graph_;
  torch::nn::Module& root_;
  const ExportedSteps::FindTensor& tensor_;
  ExportedSteps& to_;
  std::vector<Call> calls_;
  std::vector<Value> values_;  // by their numbers
  std::map<std::string, int> numbers_;
  std::map<std::string, int> named_;  // tensors of the file
  std::optional<SharedMemory> memory_;
  std::map<std::string, std::pair<std::shared_ptr<torch::nn::Module>, std::string>> layers_;
  std::set<std::string> random_;
  int64_t dropouts_ = 0, constants_ = 0, batch_norms_ = 0;
  bool is_of_training_mode_ = false;  // one of the calls is
};

}  // namespace cytra::nn
