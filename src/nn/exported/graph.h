#pragma once
// A network of torch.export that runs here. Include only from .cpp files of nn, as nn/model.h.
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <torch/nn/module.h>

#include "io/weights/exported_program.h"
#include "nn/exported/operator_call.h"

namespace cytra::nn {

/// One step of a graph: it reads and writes values by their numbers.
struct ExportedStep {
  std::function<void(Values&, c10::Device)> run;  // on the device of the inputs
  std::vector<int> reads, writes;
  std::vector<int> last;  // values that no later step reads
  std::string name;       // of the operator and its place, for messages
  int changes = -1;       // the value that it changes in place
  bool gives_numbers = false;
};

/// The graph's calls as steps. Convolutions, batch norms and dropouts become Cytra's layers, in the
/// module `root` at the names that Python gives them, so that folding, synchronised batch norms,
/// sampling of dropout and summaries treat them as any network's; other norms, with an activation
/// after them, and convolutions without a module become Cytra's operations; all else is called as
/// it is. Parameters and buffers are registered in `root` under their Python names.
///
/// In training mode dropout drops and batch norms use the batch, in evaluation they do not, as
/// Python's modules do: also where the file was exported in evaluation mode. A batch norm that is
/// in evaluation mode in a file that was exported in training mode is frozen, and stays so. Noise
/// by bernoulli_ (stochastic depth) takes its expected value in evaluation.
class ExportedSteps {
 public:
  /// `tensor` gives a parameter, buffer or constant by its name, undefined where there is none.
  /// Throws: DataError for what is not supported, naming it, and for an input that nothing reads.
  using FindTensor = std::function<at::Tensor(const std::string& name)>;
  ExportedSteps(const io::ExportedGraph& graph, torch::nn::Module& root, const FindTensor& tensor);
  ExportedSteps& operator=(ExportedSteps&&) = delete;
  /// The results for forward()'s inputs. With `recomputes`, the backward pass computes the
  /// activations within segments of the graph again (nn/recompute.h): runs of steps that leave one
  /// tensor. Throws: DataError where an operator does not take its inputs.
  std::vector<at::Tensor> run(const std::vector<at::Tensor>& inputs, bool recomputes = false) const;
  /// What could not be turned, or was frozen, for one message; empty: nothing.
  const std::vector<std::string>& remarks() const { return remarks_; }
  /// Operators that draw random numbers in training, or always.
  const std::set<std::string>& random_parts() const { return random_parts_; }
  /// Batch norms that train and became no layer, as Model::foreign_batch_norms() says.
  const std::vector<std::string>& foreign_batch_norms() const { return foreign_batch_norms_; }
  /// Constants and buffers that are no part of Python's state dict: for `root` to register.
  const std::shared_ptr<torch::nn::Module>& constants() const { return constants_; }

 private:
  friend class ExportedCompiler;
  struct Segment {
    std::size_t begin, end;  // its steps
    int result;              // the tensor that later steps read; -1: a step that is not recomputed
  };
  /// Parts the steps into runs of about the root of their number that leave one tensor; none reads
  /// what is from before it and is changed in it or after it.
  void find_segments();
  void run_steps(std::size_t begin, std::size_t end, Values& values, c10::Device device) const;
  void run_again(const Segment& segment, Values& values, c10::Device device) const;
  std::vector<Segment> segments_;
  torch::nn::Module& root_;
  std::vector<ExportedStep> steps_;
  Values initial_;                 // parameters, buffers and constants at their numbers
  std::vector<int> inputs_;        // the numbers of forward()'s inputs
  std::vector<int> memory_;        // by number: values of one number here may share memory
  bool changes_in_place_ = false;  // perhaps an input
  bool is_row_major_ = false;      // what is changed through views that need Python's order
  std::vector<int> results_;
  std::vector<std::pair<int, int>> mutations_;  // a buffer's value, its new content
  std::vector<std::string> remarks_, foreign_batch_norms_;
  std::set<std::string> random_parts_;
  std::shared_ptr<torch::nn::Module> constants_;
};

}  // namespace cytra::nn
