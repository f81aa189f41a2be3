#pragma once
// Tensors in one file, without code: https://github.com/huggingface/safetensors (format 0.4).
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "io/mapped_file.h"

namespace cytra::io {

struct TensorView {
  std::string dtype;  // "F32", "F16", "BF16", "F64", "I64", "I32", "U32", "I16", "U16", "I8", "U8",
                      // "BOOL"
  std::vector<int64_t> shape;
  const void* data = nullptr;
  std::size_t bytes = 0;
};
using TensorViews = std::map<std::string, TensorView>;
/// The bytes of one value; 0 for a type that is not listed above.
std::size_t element_size(const std::string& dtype);

/// A file mapped into memory; views stay valid as long as this lives.
/// Throws: DataError for anything that is not a complete, well-formed file (header over 100 MB,
/// holes, overlaps, sizes that do not fit, offsets beyond the end, duplicate names), ConfigError
/// when it can't be opened.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::string& path);
  ~SafetensorsFile();
  SafetensorsFile& operator=(SafetensorsFile&&) = delete;
  const TensorViews& tensors() const;
  /// Must live while the tensors are read, and be checked after that, since others may shorten the
  /// file.
  MappedFile::Reading reading() const;
  const std::map<std::string, std::string>& metadata() const;
  /// Compares the file with the checksum that write_safetensors() puts in the metadata, where
  /// there is one. Throws: DataError when the file was changed or damaged.
  void verify() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Writes atomically, with a checksum of data and metadata ("xxh3": XXH3's 64 bits in hexadecimal);
/// wide types first, then by name, so that each tensor is aligned to its own
/// type. Returns the bytes written. `durable` and Throws: as AtomicFile.
std::size_t write_safetensors(const std::string& path,
                              const TensorViews& tensors,
                              const std::map<std::string, std::string>& metadata,
                              bool durable = true);

}  // namespace cytra::io
