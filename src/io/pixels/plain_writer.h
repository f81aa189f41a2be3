#pragma once
// Pixels one after the other behind a header, as they are in memory; for the formats alone.
#include <string>

#include "base/files.h"
#include "io/writer.h"

namespace cytra::io {

/// A file of `head` and the voxels in the order C, Z, Y, X.
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
