// Registers TIFF as a format, and writes OME-TIFF by rows.
#include <algorithm>
#include <cstring>

#include "io/pixels/format.h"
#include "io/tiff/layout.h"
#include "io/tiff/ome_tiff.h"

namespace cytra::io {
namespace {

/// The options: large planes need a pyramid for viewers, and some viewers of small ones can't read
/// tiles.
WriteOptions ome_tiff_options(const ImageInfo& info, const OutputOptions& output) {
  constexpr int64_t kLarge = 2048, kSmallest = 512;
  WriteOptions options;
  options.is_labels = output.is_labels;
  int64_t side = std::max(info.shape[2], info.shape[3]);
  if (side <= kLarge) return options;
  for (; side > kSmallest; side = (side + 1) / 2) ++options.levels;
  return options;
}

class OmeTiffRows final : public ImageWriter {
 public:
  OmeTiffRows(const std::string& path, const ImageInfo& info, const OutputOptions& options)
      : ImageWriter(path, info, true), file_(path, info, ome_tiff_options(info, options)) {}

 private:
  /// Writes rows; those of a plane are kept until they are a row of blocks.
  void put(int64_t first, const Image& rows) override {
    if (is_stack()) return file_.write({{first, 0, 0}, {rows.shape[1], -1, -1}}, rows, timepoint());
    const int64_t block = file_.block()[0], end = first + rows.shape[2];
    const std::size_t row = static_cast<std::size_t>(rows.shape[3]) * size_of(rows.dtype);
    for (int64_t y = first, some; y < end; y += some) {
      const int64_t top = y / block * block, height = std::min(block, this->rows() - top);
      some = std::min(end, top + height) - y;
      if (waiting_.pixels.empty()) {
        waiting_.dtype = rows.dtype;
        waiting_.shape = {rows.shape[0], 1, height, rows.shape[3]};
        waiting_.pixels.resize(waiting_.bytes());
      }
      for (int64_t c = 0; c < rows.shape[0]; ++c) {
        std::memcpy(
            waiting_.pixels.data() + static_cast<std::size_t>(c * height + y - top) * row,
            rows.pixels.data() + static_cast<std::size_t>(c * rows.shape[2] + y - first) * row,
            static_cast<std::size_t>(some) * row);
      }
      if (y + some < top + height) continue;
      file_.write({{0, top, 0}, {1, height, -1}}, waiting_, timepoint());
      waiting_.pixels.clear();
    }
  }
  void close() override { file_.finish(); }

  OmeTiffWriter file_;
  Image waiting_;
};

std::unique_ptr<ImageWriter> create_ome_tiff(const std::string& path,
                                             const ImageInfo& info,
                                             const OutputOptions& options) {
  return std::make_unique<OmeTiffRows>(path, info, options);
}
const bool tiff_is_known = add_format("ome_tiff", [](Format& tiff) {
  tiff.title = "TIFF";
  tiff.rank = 10;
  tiff.written_endings = {".tif", ".tiff", ".btf", ".tf8"};
  for (const std::string& ending : tiff.written_endings) {
    tiff.endings.push_back(ending);
    tiff.endings.push_back(".ome" + ending);
  }
  tiff.endings.insert(tiff.endings.end(),
                      {".tf2", ".ome.tf2", ".lsm", ".stk", ".svs", ".ndpi", ".scn", ".qptiff"});
  tiff.media_type = "image/tiff";
  tiff.probe = is_tiff;
  tiff.open = open_tiff_image;
  tiff.chooses_scene = true;
  tiff.other_files = ome_other_files;
  tiff.create = create_ome_tiff;
  tiff.position = Format::Position::origin;
  tiff.output_ending = ".ome.tif";
  tiff.holds_time = true;
});

}  // namespace
}  // namespace cytra::io
