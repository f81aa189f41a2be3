#pragma once
// A tensor in a storage of PyTorch, as row-major values.
#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/safetensors.h"

namespace cytra::io {

/// Where a tensor lies in its storage, in elements.
struct StoredLayout {
  std::string dtype;  // as TensorView's
  std::vector<int64_t> shape, strides;
  int64_t offset = 0;
};

/// Reads tensors of a file; keeps the copies of those that are not row-major there.
class StoredTensors {
 public:
  /// `most_copied`: bytes of all copies. `refuse` throws an error that says what is wrong with the
  /// tensor `name`.
  using Refuse = std::function<void(const std::string& name, const std::string& what)>;
  StoredTensors(uint64_t most_copied, Refuse refuse)
      : most_copied_(most_copied), refuse_(std::move(refuse)) {}
  /// The tensor, which points into `storage` or to a copy. Throws: what `refuse` throws, for one
  /// that is not within its storage or larger than it, negative or too many strides.
  TensorView read(const std::string& name, const StoredLayout& layout, std::string_view storage);
  /// The copies, which the tensors need.
  std::list<std::vector<unsigned char>> take_copies() { return std::move(copies_); }

 private:
  const unsigned char* copy(const std::string& name,
                            const StoredLayout& layout,
                            const unsigned char* begin,
                            std::size_t stored,
                            std::size_t bytes);
  uint64_t most_copied_;
  Refuse refuse_;
  std::list<std::vector<unsigned char>> copies_;
};

}  // namespace cytra::io
