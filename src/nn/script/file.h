#pragma once
// The script of a network that is trained. Include only from .cpp files of nn.
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include <torch/csrc/jit/api/module.h>

namespace cytra::nn {

/// Equal for tensors that are the same values in memory.
using TensorPlace = std::tuple<c10::StorageImpl*, int64_t, std::vector<int64_t>>;
TensorPlace place_of(const at::Tensor& tensor);

/// Replaces the tensors of a module's lists, in which recurrent layers hold their parameters again.
void replace_in_lists(const torch::jit::Module& module,
                      const std::map<TensorPlace, at::Tensor>& replacements);

/// A file of torch.jit.save, or a checkpoint that was trained of one.
class ScriptFile {
 public:
  /// Throws: DataError for another file, and for a module that can't be trained.
  explicit ScriptFile(const std::string& path);
  torch::jit::Module module;
  std::vector<std::string> remarks;  // for the log
  /// The parameter or buffer of a name, with the values of the checkpoint where there is one.
  at::Tensor tensor(const std::string& name, const at::Tensor& own) const;
  /// An archive of the module whose weights are one zero each, for checkpoints; the weights of
  /// `module` are lost.
  std::string without_weights();

 private:
  void open_script();
  void open_checkpoint();
  std::string path_, code_;
  std::map<std::string, at::Tensor> trained_;
};

}  // namespace cytra::nn
