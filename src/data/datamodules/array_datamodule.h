#pragma once
// Images in memory, for programs that use Cytra as a library. Source: cyto_dl.datamodules.array.
#include <map>
#include <string>
#include <vector>

#include "data/datamodule.h"

namespace cytra::data {

/// A data module over tensors; the transforms of `options` run as on files, without LoadImaged:
///   ArrayDatamodule module({{Split::train, {{{"raw", image}, {"seg", mask}}}}}, options);
class ArrayDatamodule final : public DataModule {
 public:
  /// One sample: key -> (C,[D,]H,W) on the CPU, any type of real numbers. Its memory is shared, and
  /// never written.
  using Arrays = std::map<std::string, at::Tensor>;
  /// Takes the arrays. Throws: DataError for a tensor that is not as described above; ConfigError
  /// for options out of range.
  explicit ArrayDatamodule(std::map<Split, std::vector<Arrays>> arrays, LoaderOptions options = {});
  /// The samples of a split. Throws: ConfigError for a split without samples.
  std::vector<Sample> items(Split split) const override;
  const LoaderOptions& loader() const override { return options_; }

 private:
  std::map<Split, std::vector<Sample>> samples_;
  LoaderOptions options_;
};

}  // namespace cytra::data
