#include <algorithm>
#include <cerrno>
#include <stdexcept>

#include <fmt/format.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"
#include "io/format.h"
#include "io/ome_xml.h"
#include "io/tiff_handle.h"

namespace cytra::io {
namespace {

constexpr std::size_t kStripBytes = std::size_t{256} << 10;

/// OME-XML 2016-06: https://docs.openmicroscopy.org/ome-model/latest/ome-tiff/specification.html
std::string ome_xml(const Image& image) {
  const auto [c, z, y, x] = image.shape;
  const std::string name = image.dtype == Dtype::f32   ? "float"
                           : image.dtype == Dtype::f64 ? "double"
                                                       : name_of(image.dtype);
  std::string xml =
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>"
      "<OME xmlns=\"http://www.openmicroscopy.org/Schemas/OME/2016-06\" "
      "xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" "
      "xsi:schemaLocation=\"http://www.openmicroscopy.org/Schemas/OME/2016-06 "
      "http://www.openmicroscopy.org/Schemas/OME/2016-06/ome.xsd\" Creator=\"Cytra\"><Image "
      "ID=\"Image:0\">";
  xml += fmt::format(
      "<Pixels ID=\"Pixels:0\" DimensionOrder=\"XYZCT\" Type=\"{}\" SignificantBits=\"{}\" "
      "BigEndian=\"false\" "
      "SizeX=\"{}\" SizeY=\"{}\" SizeZ=\"{}\" SizeC=\"{}\" SizeT=\"1\"",
      name,
      8 * size_of(image.dtype),
      x,
      y,
      z,
      c);
  constexpr const char* kSides[] = {"Z", "Y", "X"};
  for (std::size_t side = 3; side-- > 0;) {
    const double spacing = image.geometry.spacing_um[side];
    if (spacing > 0)
      xml += fmt::format(
          " PhysicalSize{0}=\"{1}\" PhysicalSize{0}Unit=\"\xC2\xB5m\"", kSides[side], spacing);
  }
  xml += '>';
  for (int64_t channel = 0; channel < c; ++channel) {
    xml += fmt::format("<Channel ID=\"Channel:0:{}\" SamplesPerPixel=\"1\"", channel);
    if (!image.channel_names.empty()) {
      xml += " Name=\"" + xml_escape(image.channel_names[static_cast<std::size_t>(channel)]) + '"';
    }
    xml += "/>";
  }
  return xml + fmt::format("<TiffData IFD=\"0\" PlaneCount=\"{}\"/></Pixels></Image></OME>", c * z);
}

class TiffWriter {
 public:
  TiffWriter(const std::string& path, const Image& image, const WriteOptions& options)
      : path_(path), image_(image), options_(options), file_(path) {
    const int descriptor = ::dup(file_.descriptor());
    if (descriptor < 0) throw_errno("can't be written", path, errno);
    // Half a GB below the limit of classic TIFF, for what a codec adds to pixels it can't compress.
    const bool is_big = image.bytes() > (std::size_t{7} << 29);
    tiff_ = open_tiff(descriptor, is_big ? "w8" : "w", messages_);
    if (!tiff_) {
      ::close(descriptor);
      fail();
    }
  }

  void write() {
    const int64_t planes = image_.shape[0] * image_.shape[1];
    const std::size_t bytes = image_.bytes() / static_cast<std::size_t>(planes);
    for (int64_t plane = 0; plane < planes; ++plane) {
      write_page(plane == 0, image_.pixels.data() + static_cast<std::size_t>(plane) * bytes, bytes);
    }
    check(TIFFFlush(tiff_.get()) == 1);
    tiff_.reset();
    file_.commit();
  }

 private:
  [[noreturn]] void fail() const {
    if (messages_.error_number != 0) throw_errno("can't be written", path_, messages_.error_number);
    throw IoError(path_ + ": can't be written (" + messages_.error + ")");
  }
  void check(bool is_done) const {
    if (!is_done || !messages_.error.empty()) fail();
  }
  template <class... T>
  void set(uint32_t tag, T... value) {
    check(TIFFSetField(tiff_.get(), tag, value...) == 1);
  }

  void write_page(bool is_first, const unsigned char* pixels, std::size_t bytes) {
    const auto width = static_cast<uint32_t>(image_.shape[3]),
               height = static_cast<uint32_t>(image_.shape[2]);
    const std::size_t row = bytes / height;
    const auto rows = static_cast<uint32_t>(std::clamp<std::size_t>(kStripBytes / row, 1, height));
    const bool is_float = image_.dtype == Dtype::f32 || image_.dtype == Dtype::f64;
    const bool is_signed =
        image_.dtype == Dtype::i8 || image_.dtype == Dtype::i16 || image_.dtype == Dtype::i32;
    set(TIFFTAG_SUBFILETYPE, 0);
    set(TIFFTAG_IMAGEWIDTH, width);
    set(TIFFTAG_IMAGELENGTH, height);
    set(TIFFTAG_BITSPERSAMPLE, static_cast<int>(8 * size_of(image_.dtype)));
    set(TIFFTAG_SAMPLEFORMAT,
        is_float    ? SAMPLEFORMAT_IEEEFP
        : is_signed ? SAMPLEFORMAT_INT
                    : SAMPLEFORMAT_UINT);
    set(TIFFTAG_SAMPLESPERPIXEL, 1);
    set(TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_MINISBLACK);
    set(TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG);
    set(TIFFTAG_ROWSPERSTRIP, rows);
    if (options_.compression != WriteOptions::Compression::none) {
      const bool is_deflate = options_.compression == WriteOptions::Compression::deflate;
      set(TIFFTAG_COMPRESSION, is_deflate ? COMPRESSION_ADOBE_DEFLATE : COMPRESSION_LZW);
      set(TIFFTAG_PREDICTOR, is_float ? PREDICTOR_FLOATINGPOINT : PREDICTOR_HORIZONTAL);
    }
    const auto& spacing = image_.geometry.spacing_um;
    if (spacing[1] > 0 && spacing[2] > 0) {
      set(TIFFTAG_RESOLUTIONUNIT, RESUNIT_CENTIMETER);
      set(TIFFTAG_XRESOLUTION, 1e4 / spacing[2]);
      set(TIFFTAG_YRESOLUTION, 1e4 / spacing[1]);
    }
    if (is_first) {
      set(TIFFTAG_SOFTWARE, "Cytra");
      set(TIFFTAG_IMAGEDESCRIPTION, ome_xml(image_).c_str());
    }
    uint32_t strip = 0;
    for (std::size_t at = 0; at < bytes; at += rows * row, ++strip) {
      scratch_.assign(pixels + at,
                      pixels + std::min(bytes, at + rows * row));  // the predictor works in place
      const auto size = static_cast<tmsize_t>(scratch_.size());
      check(TIFFWriteEncodedStrip(tiff_.get(), strip, scratch_.data(), size) == size);
    }
    check(TIFFWriteDirectory(tiff_.get()) == 1);
  }

  const std::string& path_;
  const Image& image_;
  const WriteOptions& options_;
  AtomicFile file_;
  TiffMessages messages_;
  TiffHandle tiff_;
  std::vector<unsigned char> scratch_;
};

}  // namespace

void write_ome_tiff(const std::string& path, const Image& image, const WriteOptions& options) {
  check_writable(image);
  if (image.shape[2] > INT32_MAX || image.shape[3] > INT32_MAX / 8)
    throw std::logic_error("an image too large for a TIFF page");
  TiffWriter(path, image, options).write();
}

}  // namespace cytra::io
