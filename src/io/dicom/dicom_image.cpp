// Reads DICOM images and series; exported by libcytra_dicom.so.
#include <cstring>
#include <mutex>

#include "base/error.h"
#include "io/dicom/dicom_series.h"
#include "io/module.h"
#include "io/pixels/format.h"

namespace cytra::io {
namespace {

constexpr std::size_t kIdleFiles = 4;

void scale_as(
    Dtype dtype, const Scale& scale, const auto* from, int64_t count, unsigned char* into) {
  const auto put = [&](auto example) {
    using To = decltype(example);
    for (int64_t i = 0; i < count; ++i, into += sizeof(To)) {
      const auto value = static_cast<To>(scale.slope * static_cast<double>(from[i]) + scale.offset);
      std::memcpy(into, &value, sizeof value);
    }
  };
  if (dtype == Dtype::i16) return put(int16_t{});
  if (dtype == Dtype::u16) return put(uint16_t{});
  if (dtype == Dtype::i32) return put(int32_t{});
  put(float{});
}

class DicomImage final : public ImageReader {
 public:
  DicomImage(const std::string& path, const Selection& selection)
      : path_(path), stack_(read_stack(path, selection.scene, info_.scenes)) {
    const DicomHeader& header = stack_.header;
    info_.dtype = stack_.dtype;
    info_.shape = {header.samples, stack_.planes, header.rows, header.columns};
    info_.timepoints = stack_.timepoints;
    info_.geometry = stack_.geometry;
    check_shape(path, info_.shape, info_.dtype, stack_.file_bytes);
    Selection one = selection;
    if (one.scene == -1) one.scene = 0;
    chosen_ = select(path, one, info_);
  }

  Image read(const Region& region) const override {
    const Region part = within(region, info_.shape, path_);
    Image image = allocate_part(path_, info_, part, stack_.file_bytes);
    std::unique_ptr<OpenFile> opened;
    for (int64_t z = 0; z < part.size[0]; ++z) {
      const auto at =
          static_cast<std::size_t>(chosen_.timepoint * stack_.planes + part.begin[0] + z);
      const DicomSlice& slice = stack_.slices[at];
      if (!opened || opened->number != slice.file) opened = take(slice.file);
      put_plane(opened->file.decode(slice.frame), slice.where.scale, part, z, image);
    }
    give(std::move(opened));
    return image;
  }

 private:
  struct OpenFile {
    OpenFile(std::size_t n, const std::string& path) : number(n), file(path) {}
    std::size_t number;
    DicomFile file;
  };

  std::unique_ptr<OpenFile> take(std::size_t number) const {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      for (auto idle = idle_.begin(); idle != idle_.end(); ++idle) {
        if ((*idle)->number != number) continue;
        std::unique_ptr<OpenFile> opened = std::move(*idle);
        idle_.erase(idle);
        return opened;
      }
    }
    const std::string& path = stack_.files[number];
    auto opened = std::make_unique<OpenFile>(number, path);
    const DicomHeader& header = opened->file.header();
    const bool has_changed = !header.like(stack_.header) ||
                             header.stored_bits > stack_.header.stored_bits ||
                             header.frames.size() < frames_of(number);
    if (has_changed) {
      throw DataError(path + ": its pixels are not like those of " + stack_.files[0] +
                      ", expected one size and type in a series");
    }
    return opened;
  }
  void give(std::unique_ptr<OpenFile> opened) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (stack_.files.size() == 1 && idle_.size() < kIdleFiles) idle_.push_back(std::move(opened));
  }
  std::size_t frames_of(std::size_t number) const {
    std::size_t frames = 0;
    for (const DicomSlice& slice : stack_.slices) {
      if (slice.file == number)
        frames = std::max(frames, static_cast<std::size_t>(slice.frame) + 1);
    }
    return frames;
  }

  void put_plane(const DicomFile::Frame& frame,
                 const Scale& scale,
                 const Region& part,
                 int64_t z,
                 Image& image) const {
    const DicomHeader& header = stack_.header;
    const auto size = static_cast<std::ptrdiff_t>(frame.type.size());
    const bool is_planar = frame.is_planar || header.samples == 1;
    const std::ptrdiff_t step = is_planar ? size : size * header.samples;
    const std::ptrdiff_t apart = is_planar ? size * header.rows * header.columns : size;
    const int64_t width = part.size[2];
    const std::size_t row_bytes = static_cast<std::size_t>(width) * size_of(image.dtype);
    StoredType type = frame.type;
    type.kind = header.type.kind;
    const Dtype plain = dtype_of(type).value();
    const bool is_as_stored = image.dtype == plain && scale.slope == 1 && scale.offset == 0;
    std::vector<unsigned char> row(static_cast<std::size_t>(width) * size_of(plain));
    for (std::size_t c = 0; c < chosen_.channels.size(); ++c) {
      for (int64_t y = 0; y < part.size[1]; ++y) {
        const unsigned char* from = frame.cells.data() + chosen_.channels[c] * apart +
                                    ((part.begin[1] + y) * header.columns + part.begin[2]) * step;
        const int64_t line = (static_cast<int64_t>(c) * part.size[0] + z) * part.size[1] + y;
        unsigned char* into = image.pixels.data() + static_cast<std::size_t>(line) * row_bytes;
        convert(path_, type, from, step, width, is_as_stored ? into : row.data());
        if (!is_as_stored) scale_row(plain, scale, row.data(), width, image.dtype, into);
      }
    }
  }

  static void scale_row(Dtype from,
                        const Scale& scale,
                        const unsigned char* row,
                        int64_t count,
                        Dtype to,
                        unsigned char* into) {
    with_type(from, [&](auto example) {
      using From = decltype(example);
      scale_as(to, scale, reinterpret_cast<const From*>(row), count, into);
    });
  }

  std::string path_;
  DicomStack stack_;
  Chosen chosen_;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<OpenFile>> idle_;
};

}  // namespace
}  // namespace cytra::io

extern "C" cytra::io::ImageReader* cytra_open_image(const std::string& path,
                                                    const cytra::io::Selection& selection) {
  return new cytra::io::DicomImage(path, selection);
}
