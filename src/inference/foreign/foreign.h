#pragma once
// Models that other frameworks have written.
#include <map>
#include <optional>
#include <string>

#include "inference/trained_model.h"

namespace cytra::inference {

/// What a file is, told by its content, not its name.
enum class ModelKind {
  weights,      // of a network that is registered here: ours, PyTorch's, safetensors
  torchscript,  // torch.jit.save
  aoti,         // torch._inductor.aoti_compile_and_package
  bundle        // of MONAI: a folder, or a ZIP archive of one
};
/// Throws: DataError for a ZIP archive that is cut, and for a program of torch.export.
ModelKind kind_of(const std::string& path);

/// What a file of another framework computes, and what it says of itself.
struct Program {
  Forward forward;
  std::function<std::string()> torchscript;
  Place place;
  int64_t in_channels = 0, spatial_dims = 0;       // 0: not known
  std::vector<int64_t> window;                     // the only sides it takes; empty: not known
  std::vector<int64_t> divisor;                    // as LoadedModel's; empty: not known
  config::Node config = config::Node::make_map();  // as LoadedModel's; what is known of it
  std::string fingerprint;
};

Program open_torchscript(const std::string& path);
Program open_aoti(const std::string& path);
/// Its transforms, sliding window and classes become ours. Throws: ConfigError with the place of
/// what is not known here.
Program open_bundle(const std::string& path);

/// The program as a model: what neither it nor `config` (task.model.{in_channels, spatial_dims,
/// divisor}) says is found by trying it out. Throws: DataError when no windows fit, naming the keys
/// that would say which do.
LoadedModel complete(const std::string& path,
                     Program program,
                     const std::optional<std::string>& config);

/// The files of a ZIP archive whose name ends so: "constants.pkl", by their whole names. What is
/// compressed is unpacked. Throws: DataError.
std::map<std::string, std::string> unpack(const std::string& path, const std::string& ending);

/// Of a network's weights, and of the options it was made with.
std::string fingerprint_of(const nn::Model& network, const config::Node& model);

/// What torch says, without places in its sources.
std::string brief(const std::exception& error);

}  // namespace cytra::inference
