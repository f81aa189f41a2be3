#pragma once
// Writes pixels after a header, as they are in memory; for the formats only.
#include <string>

#include "base/files.h"
#include "io/writer.h"

namespace cytra::io {

/// Writes a file of `head` and the voxels in the order C, Z, Y, X.
class PlainWriter final : public ImageWriter {
 public:
  PlainWriter(const std::string& path, const ImageInfo& info, const std::string& head);

 private:
  void put(int64_t first, const Image& rows) override;
  void close() override { file_.commit(); }

  AtomicFile file_;
  std::size_t head_;
};

}  // namespace cytra::io
