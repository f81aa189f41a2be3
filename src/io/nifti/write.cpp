// Part of io/nifti/nifti.h: writing.
#include <algorithm>

#include "io/compression/gzip_writer.h"
#include "io/nifti/nifti.h"
#include "io/pixels/format.h"
#include "io/pixels/plain_writer.h"

namespace cytra::io {
namespace {

std::string nifti_head(const ImageInfo& info) {
  const auto [c, z, y, x] = info.shape;
  NiftiHeader header;
  header.is_second = std::max({c, z, y, x}) > INT16_MAX;
  header.dim = {c > 1 ? 5 : 3, x, y, z, 1, c, 1, 1};
  constexpr int16_t kTypes[] = {2, 256, 512, 4, 768, 8, 16, 64};  // in the order of Dtype
  header.datatype = kTypes[static_cast<std::size_t>(info.dtype)];
  header.slope = 1;
  set_geometry(info.geometry, header);
  return format_nifti(header);
}

/// Writes .nii.gz. Channels follow each other, so each is a lane.
class NiftiGzWriter final : public ImageWriter {
 public:
  NiftiGzWriter(const std::string& path, const ImageInfo& info)
      : ImageWriter(path, info), file_(path, static_cast<std::size_t>(info.shape[0])) {
    const std::string head = nifti_head(info);
    file_.write(0, head.data(), head.size());
  }

 private:
  void put(int64_t, const Image& rows) override {
    const auto channels = static_cast<std::size_t>(rows.shape[0]);
    const std::size_t part = rows.pixels.size() / channels;
    for (std::size_t c = 0; c < channels; ++c) file_.write(c, rows.pixels.data() + c * part, part);
  }
  void close() override { file_.finish(); }

  GzipWriter file_;
};

}  // namespace

std::unique_ptr<ImageWriter> create_nifti(const std::string& path,
                                          const ImageInfo& info,
                                          const OutputOptions&) {
  if (path.ends_with(".gz") || path.ends_with(".GZ"))
    return std::make_unique<NiftiGzWriter>(path, info);
  return std::make_unique<PlainWriter>(path, info, nifti_head(info));
}

void write_nifti(const std::string& path, const Image& image) {
  write_whole(*create_nifti(path, writable_info(image), {}), image);
}

}  // namespace cytra::io
