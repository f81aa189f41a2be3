// OME-Zarr by rows: create_image()'s.
#include <algorithm>

#include "io/pixels/format.h"
#include "io/zarr/write.h"

namespace cytra::io {
namespace {

class OmeZarrRows final : public ImageWriter {
 public:
  OmeZarrRows(const std::string& path, const ImageInfo& info, const ZarrOptions& options)
      : ImageWriter(path, info), file_(path, info, options) {}

 private:
  void put(int64_t first, const Image& rows) override {
    if (is_stack()) return file_.write({{first, 0, 0}, {rows.shape[1], -1, -1}}, rows);
    file_.write({{0, first, 0}, {1, rows.shape[2], -1}}, rows);
  }
  void close() override { file_.finish(); }

  ZarrWriter file_;
};

/// Rows wait in memory until they are a row of chunks: where they are large, those are flatter.
int64_t chunk_rows(const ImageInfo& info, int64_t usual) {
  constexpr std::size_t kMost = std::size_t{128} << 20;
  const int64_t plane = info.shape[1] > 1 ? info.shape[2] : 1;
  const std::size_t row =
      static_cast<std::size_t>(info.shape[0] * plane * info.shape[3]) * size_of(info.dtype);
  while (usual > 1 && static_cast<std::size_t>(usual) * row > kMost) usual /= 2;
  return usual;
}

std::unique_ptr<ImageWriter> create_ome_zarr(const std::string& path,
                                             const ImageInfo& info,
                                             const OutputOptions& output) {
  ZarrOptions options;
  options.is_labels = output.is_labels;
  if (output.is_zarr_v3) options.version = ZarrOptions::Version::v0_5;
  const std::size_t axis = info.shape[1] > 1 ? 1 : 2;
  options.chunk[axis] = chunk_rows(info, usual_chunk(info)[axis]);
  return std::make_unique<OmeZarrRows>(path, info, options);
}
const bool ome_zarr_is_written = add_output({".zarr"}, create_ome_zarr);

}  // namespace
}  // namespace cytra::io
