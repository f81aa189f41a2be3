#pragma once
// What a network of torch.export is told beside what its file says.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/node.h"
#include "nn/model.h"

namespace cytra::nn {

/// A result that is a head of MultiTask.
struct ExportedHead {
  int64_t out_channels = 1;
  void visit(auto& v) {
    v("out_channels", out_channels, "must be the file's", config::required);
    v("_target_", config::Unused{}, "its layers are in the file");
  }
};

struct ExportedOptions : ModelOptions {
  std::string file;
  std::optional<std::string> output;
  bool deep_supervision = false;
  std::optional<std::vector<int64_t>> divisor;
  std::optional<int64_t> spatial_dims, in_channels, out_channels;
  config::Node heads;
  void visit(auto& v) {
    v("file",
      file,
      "what torch.export.save wrote (net.pt2), or a checkpoint that was trained of it",
      config::required);
    v("output",
      output,
      "the result that is trained and predicted: its key or number; null: the first");
    v("deep_supervision",
      deep_supervision,
      "the other results are coarser ones for the same target, which training compares, too");
    v("divisor",
      divisor,
      "sides must be multiples of it; null: as the file's conditions say, or found by trying");
    v("spatial_dims", spatial_dims, "must be the file's; null: the file's");
    v("in_channels", in_channels, "must be the file's; null: the file's");
    v("out_channels", out_channels, "must be the file's; null: the file's");
    ModelOptions::visit(v);
    v("heads",
      heads,
      "the results that are the heads of a MultiTask, by their keys or numbers: {seg: "
      "{out_channels: 2}, dist: {out_channels: 1}}; null or {}: `output` alone");
  }
  void check() const;
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
