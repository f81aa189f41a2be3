#pragma once
// What networks that were written elsewhere share: their options beside what the file says.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nn/model.h"

namespace cytra::nn {

struct ForeignOptions : ModelOptions {
  std::string file;
  std::optional<std::string> output;
  bool deep_supervision = false;
  std::optional<std::vector<int64_t>> divisor;
  std::optional<int64_t> spatial_dims, in_channels, out_channels;
  /// `file_is`: what the file holds.
  template <class V>
  void visit(V& v, const char* file_is) {
    v("file", file, file_is, config::required);
    v("output",
      output,
      "the result that is trained and predicted: its key or number; null: the "
      "first");
    v("deep_supervision",
      deep_supervision,
      "the other results are coarser ones for the same target, which training compares, too");
    v("divisor",
      divisor,
      "sides must be multiples of it; null: as the file's conditions say, or found by trying");
    v("spatial_dims", spatial_dims, "2 or 3; null: as the file, or its first convolution, says");
    v("in_channels",
      in_channels,
      "channels of images; null: as the file, or its first convolution, says");
    v("out_channels", out_channels, "must be the file's; null: the file's");
    ModelOptions::visit(v);
  }
};

/// The number of the result that has the name `output` or is that number, as model.`key` gives it.
/// Throws: ConfigError.
std::size_t result_called(const std::string& path,
                          const char* key,
                          const std::string& output,
                          const std::vector<std::string>& names);

/// Throws: ConfigError where model.`key` is given as another number than the network's own.
void expect_as_given(const std::string& path,
                     const char* key,
                     std::optional<int64_t> given,
                     int64_t own);

/// model.divisor. Throws: ConfigError unless it has a number from 1 for each dimension.
std::vector<int64_t> checked_divisor(const std::vector<int64_t>& given, int64_t spatial_dims);

}  // namespace cytra::nn
