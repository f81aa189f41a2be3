#pragma once
// What TorchScript of others does, looked at before any of it runs. Include only from .cpp files.
#include <string>

#include <caffe2/serialize/inline_container.h>
#include <torch/csrc/jit/api/module.h>

namespace cytra::inference {

/// Before it is loaded, which runs __setstate__ and default arguments: every source of the archive,
/// by the tokens that PyTorch's own lexer sees in it, and what its pickles make. Throws: DataError
/// naming the first thing that is not allowed, or not known.
void expect_harmless_archive(const std::string& path,
                             caffe2::serialize::PyTorchStreamReader& archive);

/// Once it is loaded: each node of each function. Throws: as above.
void expect_harmless_graphs(const std::string& path, const torch::jit::Module& module);

}  // namespace cytra::inference
