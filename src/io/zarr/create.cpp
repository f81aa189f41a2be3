// Registers OME-Zarr as a format, and writes it by rows.

#include "io/pixels/format.h"
#include "io/zarr/ome_zarr.h"
#include "io/zarr/write.h"

namespace cytra::io {
namespace {

class OmeZarrRows final : public ImageWriter {
 public:
  OmeZarrRows(const std::string& path, const ImageInfo& info, const ZarrOptions& options)
      : ImageWriter(path, info, true), file_(path, info, options) {}

 private:
  void put(int64_t first, const Image& rows) override {
    if (is_stack()) return file_.write({{first, 0, 0}, {rows.shape[1], -1, -1}}, rows, timepoint());
    file_.write({{0, first, 0}, {1, rows.shape[2], -1}}, rows, timepoint());
  }
  void close() override { file_.finish(); }

  ZarrWriter file_;
};

/// The rows of a chunk. Rows are kept in memory until they are a row of chunks, so chunks of large
/// rows are flatter.
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
const bool zarr_is_known = add_format("ome_zarr", [](Format& zarr) {
  zarr.title = "OME-Zarr";
  zarr.rank = 20;
  zarr.endings = {".zarr", ".ome.zarr"};
  zarr.are_folders = true;
  zarr.probe = is_zarr;
  zarr.open = open_zarr;
  zarr.create = create_ome_zarr;
  zarr.written_endings = {".zarr"};
  zarr.position = Format::Position::origin;
  zarr.output_ending = ".ome.zarr";
  zarr.holds_time = true;
});

}  // namespace
}  // namespace cytra::io
