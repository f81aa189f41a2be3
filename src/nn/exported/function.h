#pragma once
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace cytra::nn {

/// A function of tensors that torch.export.save wrote: a loss, a transform. Several threads may
/// call it.
class ExportedFunction {
 public:
  /// `inputs`: what forward()'s tensors are called in messages; from `least` of them on are needed.
  /// Throws: DataError for another number of tensors; as ExportedFile and ExportedSteps.
  ExportedFunction(const std::string& path, std::vector<std::string> inputs, std::size_t least);
  ~ExportedFunction();
  /// How many tensors it takes.
  std::size_t count() const;
  /// The first result, on the device of the first input; inputs take the types that they had when
  /// the file was made. Its parameters are constants. Throws: DataError naming the file for shapes
  /// that it does not take.
  at::Tensor operator()(std::vector<at::Tensor> inputs) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cytra::nn
