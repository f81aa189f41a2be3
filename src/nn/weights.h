#pragma once
#include <map>
#include <string>

#include <ATen/core/Tensor.h>

#include "base/tensor_fwd.h"
#include "config/node.h"
#include "io/safetensors.h"

namespace cytra::nn {

/// The name of the module in which a network from a file keeps its graph and constants as buffers,
/// so that a checkpoint is complete (nn/models/exported.cpp). load_state() leaves
/// them as they are.
inline constexpr const char* kGraphModule = "exported_program.";

/// Every parameter and buffer by its dotted name, as torch's state_dict().
std::map<std::string, at::Tensor> state_of(const torch::nn::Module& module);

/// What of a module a file must hold, by name and shape; the rest of the module stays as it is.
enum class Fit {
  all,    // everything, and nothing else
  names,  // any of its names, each in its shape
  most,   // at least half of its numbers: a start for other classes or channels, as nnU-Net's
  some,   // any numbers, where most of what has a name of it has its shape, too
};

/// Copies tensors "<prefix><name>" into the module; all that fit or, when this throws, none. Second
/// names of the same tensors, which MONAI's DynUNet and nnU-Net's networks have, are skipped.
/// `path` is for messages. Logs the share that is taken and what is not, where `fit` is not `all`.
/// Throws: DataError listing what is missing, unexpected or of another shape.
void load_state(torch::nn::Module& module,
                const io::TensorViews& tensors,
                const std::string& path,
                const std::string& prefix,
                Fit fit);

/// `tensors` under the module's own names: prefixes of wrappers (`model.`, `module.`,
/// `_orig_mod.`, any other) are removed, and the prefix of all names of the module is added, in
/// the way that fits the most tensors. Logs what it changed.
io::TensorViews fit_names(const torch::nn::Module& module,
                          const io::TensorViews& tensors,
                          const std::string& path);

/// Weights alone: from a checkpoint, or from a file of safetensors or PyTorch
/// (io/weights/torch_file.h; told by its content) with the module's names, whatever stands before
/// them (fit_names). Throws: as load_state().
void load_weights(const std::string& path, torch::nn::Module& module, Fit fit = Fit::all);

/// Opens a checkpoint of Cytra. Throws: DataError, which ends with `hint`, for a file of PyTorch.
io::SafetensorsFile open_checkpoint(const std::string& path, const std::string& hint);
/// The text that it holds under `key`: "state" or "config". Throws: DataError, which ends with
/// `hint`, when there is none.
const std::string& checkpoint_text(const io::SafetensorsFile& checkpoint,
                                   const std::string& path,
                                   const std::string& key,
                                   const std::string& hint);
/// The configuration a checkpoint was trained with. Throws: DataError when it holds none.
config::Node checkpoint_config(const std::string& path);

/// The tensor's own memory, as a safetensors file is written from; it must outlive the view.
/// Throws: std::logic_error for a dtype that has no safetensors type.
io::TensorView view_of(const at::Tensor& contiguous_cpu_tensor);
/// A tensor that owns its data. Throws: DataError for a dtype there is no tensor type for.
at::Tensor tensor_of(const io::TensorView& view, const std::string& name);
at::ScalarType scalar_type_of(const io::TensorView& view, const std::string& name);

}  // namespace cytra::nn
