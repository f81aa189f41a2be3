#pragma once
// Reads weights of PyTorch without Python, torch or running any code of the file.
#include <memory>
#include <string>
#include <string_view>

#include "io/safetensors.h"

namespace cytra::io {

/// Whether the file's first bytes are those of a ZIP archive or a pickle, as torch.save writes, and
/// not of safetensors. Throws: as InputFile.
bool is_torch_file(const std::string& path);

/// The state dict of a file that torch.save wrote: bare, or inside a checkpoint (of Lightning,
/// nnU-Net, MONAI ...) under one of the usual names. Both formats are read: ZIP archives (torch
/// 1.6 and later) and the older one. Only dicts, tensors and parameters of the pickle are used;
/// every other object is skipped. Values are row-major, whatever their strides; requires_grad and
/// devices are ignored. Map of the file: views stay valid as long as this lives.
/// Throws: DataError for anything else, with advice how to convert it: TorchScript, whole modules,
/// tensors that are sparse, quantised, complex, expanded or outside their storage, big-endian
/// files; as InputFile when it can't be opened.
/// Source: torch/serialization.py and torch/_utils.py of PyTorch 2.11.
class TorchFile {
 public:
  explicit TorchFile(const std::string& path);
  /// The file that another one, at `path`, holds as `bytes`, which must outlive it. It may be
  /// empty of tensors, and reading() is the caller's.
  TorchFile(const std::string& path, std::string_view bytes);
  ~TorchFile();
  TorchFile& operator=(TorchFile&&) = delete;
  const TensorViews& tensors() const;
  /// Must live while the tensors are read, and be checked after that, since others may shorten the
  /// file.
  MappedFile::Reading reading() const;
  /// The place where the state dict was found: "state_dict", "model.state_dict"; "" is the whole
  /// file.
  const std::string& place() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cytra::io
