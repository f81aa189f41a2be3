#pragma once
// Checks foreign TorchScript before any of it runs. Include only from .cpp files.
#include <string>

#include <caffe2/serialize/inline_container.h>
#include <torch/csrc/jit/api/module.h>

namespace cytra::nn {

/// Checks an archive before it is loaded, since loading runs __setstate__ and default arguments:
/// every source of the archive, by the tokens of PyTorch's own lexer, and what its pickles make.
/// Throws: DataError naming the first thing that is not allowed, or not known.
void expect_harmless_archive(const std::string& path,
                             caffe2::serialize::PyTorchStreamReader& archive);

/// Checks each node of each function of a loaded module. Throws: what expect_harmless_archive()
/// throws.
void expect_harmless_graphs(const std::string& path, const torch::jit::Module& module);

}  // namespace cytra::nn
