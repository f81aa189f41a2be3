#include "io/pixels/plain_writer.h"

namespace cytra::io {

PlainWriter::PlainWriter(const std::string& path, const ImageInfo& info, const std::string& head)
    : ImageWriter(path, info), file_(path), head_(head.size()) {
  file_.write(head);
}

void PlainWriter::put(int64_t first, const Image& rows) {
  const auto channels = static_cast<std::size_t>(info().shape[0]);
  const std::size_t part = rows.bytes() / channels;
  const auto count = static_cast<std::size_t>(rows.shape[is_stack() ? 1 : 2]);
  const std::size_t row = part / count;
  for (std::size_t c = 0; c < channels; ++c) {
    const std::size_t at =
        c * static_cast<std::size_t>(this->rows()) + static_cast<std::size_t>(first);
    file_.write_at(head_ + at * row, rows.pixels.data() + c * part, part);
  }
}

}  // namespace cytra::io
