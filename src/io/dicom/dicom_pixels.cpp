// Part of io/dicom/dicom_file.h: the pixels of a DICOM file, frame by frame.
#include <cmath>
#include <cstring>

#include <dcmtk/config/osconfig.h>
#include <dcmtk/dcmdata/dccodec.h>
#include <dcmtk/dcmdata/dcpixel.h>
#include <dcmtk/dcmdata/dcpixseq.h>
#include <dcmtk/dcmdata/dcpxitem.h>
#include <dcmtk/dcmdata/dctk.h>
#include <fmt/format.h>

#include "io/dicom/dicom_file.h"
#include "io/pixels/format.h"

namespace cytra::io {
namespace {

bool is_jpeg2000(E_TransferSyntax syntax) {
  return syntax == EXS_JPEG2000LosslessOnly || syntax == EXS_JPEG2000;
}

bool is_known(E_TransferSyntax syntax) {
  for (const E_TransferSyntax known : {EXS_JPEGProcess1,
                                       EXS_JPEGProcess2_4,
                                       EXS_JPEGProcess14,
                                       EXS_JPEGProcess14SV1,
                                       EXS_JPEGLSLossless,
                                       EXS_JPEGLSLossy,
                                       EXS_RLELossless}) {
    if (syntax == known) return true;
  }
  return is_jpeg2000(syntax);
}

/// Converts YBR to RGB by PS3.3, C.7.6.3.1.2, in the steps of pydicom.
void to_rgb(unsigned char* y, unsigned char* blue, unsigned char* red) {
  const float luma = *y, cb = static_cast<float>(*blue) - 128, cr = static_cast<float>(*red) - 128;
  const auto rounded = [](float value) {
    return static_cast<unsigned char>(std::min(std::max(std::floor(value + 0.5F), 0.0F), 255.0F));
  };
  *y = rounded(luma + 1.402F * cr);
  *blue = rounded(luma - 0.114F * 1.772F / 0.587F * cb - 0.299F * 1.402F / 0.587F * cr);
  *red = rounded(luma + 1.772F * cb);
}

void ybr_to_rgb(DicomFile::Frame& frame) {
  const std::size_t count = frame.cells.size() / 3, step = frame.is_planar ? 1 : 3,
                    apart = frame.is_planar ? count : 1;
  for (std::size_t i = 0; i < count; ++i) {
    unsigned char* at = frame.cells.data() + i * step;
    to_rgb(at, at + apart, at + 2 * apart);
  }
}

/// Expands Y Y Cb Cr of two pixels of a row to full chroma.
std::vector<unsigned char> whole_chroma(const std::vector<unsigned char>& half) {
  std::vector<unsigned char> whole;
  whole.reserve(half.size() / 4 * 6);
  for (std::size_t i = 0; i + 4 <= half.size(); i += 4) {
    for (const std::size_t luma : {i, i + 1})
      whole.insert(whole.end(), {half[luma], half[i + 2], half[i + 3]});
  }
  return whole;
}

/// Clears the bits above the stored ones, or repeats their sign there.
template <class Cell, class Signed>
void tidy(std::vector<unsigned char>& cells, int bits, bool is_signed) {
  const int unused = static_cast<int>(8 * sizeof(Cell)) - bits;
  for (std::size_t i = 0; i + sizeof(Cell) <= cells.size(); i += sizeof(Cell)) {
    Cell cell;
    std::memcpy(&cell, cells.data() + i, sizeof cell);
    cell = static_cast<Cell>(cell << unused);
    cell = is_signed ? static_cast<Cell>(static_cast<Signed>(cell) >> unused)
                     : static_cast<Cell>(cell >> unused);
    std::memcpy(cells.data() + i, &cell, sizeof cell);
  }
}

/// Widens the samples of a JPEG 2000 to cells of the file's size.
void widen(const Image& image, int bits, std::vector<unsigned char>& cells) {
  const std::size_t from = size_of(image.dtype), to = static_cast<std::size_t>(bits) / 8;
  const bool is_signed = image.dtype == Dtype::i8 || image.dtype == Dtype::i16;
  cells.assign(image.pixels.size() / from * to, 0);
  for (std::size_t i = 0; i < image.pixels.size() / from; ++i) {
    const unsigned char* sample = image.pixels.data() + i * from;
    std::memcpy(cells.data() + i * to, sample, from);  // the low bytes come first
    if (is_signed && (sample[from - 1] & 0x80) != 0)
      std::memset(cells.data() + i * to + from, 0xff, to - from);
  }
}

/// Decodes RLE by PS3.5, annex G: a segment for each byte of each sample, the highest byte first;
/// planar. DCMTK's decoder would take a segment that ends too early for a complete one. Returns
/// false for damaged data.
bool decode_rle(const std::string& stream,
                std::size_t bytes,
                int64_t samples,
                std::vector<unsigned char>& cells) {
  constexpr std::size_t kHeader = 64;
  const auto number = [&](std::size_t at) {
    uint32_t value = 0;
    std::memcpy(&value, stream.data() + at, sizeof value);
    return std::size_t{value};
  };
  const std::size_t segments = bytes * static_cast<std::size_t>(samples),
                    count = cells.size() / segments;
  if (stream.size() < kHeader || number(0) != segments || segments > 15) return false;
  for (std::size_t segment = 0; segment < segments; ++segment) {
    const std::size_t sample = segment / bytes, byte = bytes - 1 - segment % bytes;
    unsigned char* into = cells.data() + sample * count * bytes + byte;
    std::size_t at = number(4 + 4 * segment), done = 0;
    while (done < count) {
      if (at + 2 > stream.size()) return false;
      const auto code = static_cast<signed char>(stream[at++]);
      if (code == -128) continue;
      const std::size_t run = static_cast<std::size_t>(code < 0 ? 1 - code : 1 + code);
      if (run > count - done || (code >= 0 && run > stream.size() - at)) return false;
      for (std::size_t i = 0; i < run; ++i, ++done)
        into[done * bytes] = static_cast<unsigned char>(stream[code < 0 ? at : at + i]);
      at += code < 0 ? 1 : run;
    }
  }
  return true;
}

}  // namespace

void DicomFile::check_pixels(DcmItem& item) {
  const E_TransferSyntax syntax = file_->getDataset()->getOriginalXfer();
  DcmElement* element = nullptr;
  for (const DcmTagKey& tag : {DCM_PixelData, DCM_FloatPixelData, DCM_DoubleFloatPixelData}) {
    if (item.findAndGetElement(tag, element).good() && element != nullptr) break;
  }
  if (item.tagExists(DCM_TotalPixelMatrixColumns))
    fail("a slide in tiles", "slices; convert it to OME-TIFF");
  if (element == nullptr) fail("no pixels", "an image (not a report, a plan or a DICOMDIR)");
  const auto frames = header_.frames.size();
  if (is_packed_) {
    if (!is_known(syntax)) {
      fail(fmt::format("pixels as '{}'", DcmXfer(syntax).getXferName()),
           "plain ones, JPEG, JPEG-LS, JPEG 2000 or RLE; convert it with gdcmconv --raw");
    }
    auto* pixels = dynamic_cast<DcmPixelData*>(element);
    DcmPixelSequence* sequence = nullptr;
    if (pixels == nullptr || header_.type.kind == 'f' ||
        pixels->getEncapsulatedRepresentation(syntax, nullptr, sequence).bad() ||
        sequence == nullptr)
      fail("plain pixels under a transfer syntax of compressed ones", "compressed pixels");
    if (sequence->card() < frames + 1) {
      fail(fmt::format("{} compressed pieces for {} frames", sequence->card(), frames),
           "one per frame at least");
    }
    return;
  }
  const auto bits = static_cast<std::size_t>(is_bitmap_ ? 1 : header_.type.bits);
  if (header_.colours == "YBR_FULL_422" && header_.columns % 2 != 0)
    fail("an odd number of columns in YBR_FULL_422", "an even one");
  frame_bits_ = static_cast<std::size_t>(header_.rows * header_.columns * header_.samples) * bits;
  if (header_.colours == "YBR_FULL_422") frame_bits_ = frame_bits_ / 3 * 2;
  const std::size_t wanted = (frame_bits_ * frames + 7) / 8, there = element->getLengthField();
  if (there < wanted || there == 0xffffffff) {
    fail(fmt::format("{} bytes of pixels", there),
         fmt::format("{} for its {} frames; the file may be truncated", wanted, frames));
  }
  if (bits == 32 && DcmXfer(syntax).isBigEndian() && header_.type.kind != 'f')
    fail("32-bit integers in big-endian order", "little-endian ones");
  pixels_ = element;
}

DicomFile::Frame DicomFile::decode(int64_t frame) const {
  Frame decoded;
  decoded.type = header_.type;
  decoded.is_planar = header_.is_planar;
  if (is_packed_) {
    decode_packed(frame, decoded);
  } else {
    decode_plain(frame, decoded);
  }
  // The stored bits are the lowest ones whatever HighBit says, as in pydicom.
  const int bits = std::min(header_.stored_bits, decoded.type.bits);
  const bool is_signed = header_.type.kind == 'i';
  if (decoded.type.kind == 'f' || bits == decoded.type.bits || is_bitmap_) return decoded;
  if (decoded.type.bits == 8) tidy<uint8_t, int8_t>(decoded.cells, bits, is_signed);
  if (decoded.type.bits == 16) tidy<uint16_t, int16_t>(decoded.cells, bits, is_signed);
  if (decoded.type.bits == 32) tidy<uint32_t, int32_t>(decoded.cells, bits, is_signed);
  return decoded;
}

void DicomFile::decode_plain(int64_t frame, Frame& decoded) const {
  const std::size_t first = frame_bits_ * static_cast<std::size_t>(frame), begin = first / 8,
                    end = (first + frame_bits_ + 7) / 8;
  decoded.cells.resize(end - begin);
  const OFCondition result = pixels_->getPartialValue(
      decoded.cells.data(), static_cast<Uint32>(begin), static_cast<Uint32>(end - begin));
  if (result.bad())
    fail(fmt::format("frame {} can't be read ({})", frame, result.text()), "a complete file");
  if (is_bitmap_) {  // the lowest bit comes first
    std::vector<unsigned char> pixels(frame_bits_);
    for (std::size_t i = 0; i < pixels.size(); ++i) {
      const std::size_t at = first % 8 + i;
      pixels[i] = decoded.cells[at / 8] >> at % 8 & 1;
    }
    decoded.cells.swap(pixels);
  }
  if (header_.samples == 3 && header_.colours == "YBR_FULL_422") {
    decoded.cells = whole_chroma(decoded.cells);
    decoded.is_planar = false;
  }
  if (header_.samples == 3 && header_.colours != "RGB") ybr_to_rgb(decoded);
}

/// The compressed bytes of a frame.
std::string DicomFile::stream_of(int64_t frame) const {
  DcmDataset& item = *file_->getDataset();
  DcmElement* element = nullptr;
  DcmPixelSequence* sequence = nullptr;
  item.findAndGetElement(DCM_PixelData, element);
  static_cast<DcmPixelData*>(element)->getEncapsulatedRepresentation(
      item.getOriginalXfer(), nullptr, sequence);
  const auto frames = static_cast<Sint32>(header_.frames.size());
  const auto number = static_cast<Uint32>(frame);
  Uint32 begin = 1, end = static_cast<Uint32>(sequence->card());
  const bool is_found =
      DcmCodec::determineStartFragment(number, frames, sequence, begin).good() &&
      (frame + 1 == frames ||
       DcmCodec::determineStartFragment(number + 1, frames, sequence, end).good());
  if (!is_found || begin < 1 || begin >= end || end > sequence->card())
    fail(fmt::format("no beginning of frame {}", frame),
         "a table of offsets, or a piece per frame");
  std::string stream;
  for (Uint32 i = begin; i < end; ++i) {
    DcmPixelItem* piece = nullptr;
    Uint8* bytes = nullptr;
    if (sequence->getItem(piece, i).bad() || piece->getUint8Array(bytes).bad() || bytes == nullptr)
      fail(fmt::format("frame {} is cut off", frame), "a complete file");
    stream.append(reinterpret_cast<char*>(bytes), piece->getLength());
    piece->compact();
  }
  return stream;
}

/// Checks a JPEG's sizes, by which DCMTK allocates: they must be those of the DICOM header
/// (ISO/IEC 10918-1, B.2.2; JPEG-LS has the same frame header).
void DicomFile::check_jpeg(const std::string& stream, int64_t frame) const {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(stream[i]); };
  std::size_t at = 2;
  while (at + 10 <= stream.size() && byte(at) == 0xff) {
    const unsigned kind = byte(at + 1);
    if (kind == 0xff) {  // filling
      ++at;
      continue;
    }
    const bool is_frame = kind == 0xf7 || (kind >= 0xc0 && kind <= 0xcf && kind != 0xc4 &&
                                           kind != 0xc8 && kind != 0xcc);
    if (is_frame) {
      const int64_t rows = byte(at + 5) << 8 | byte(at + 6),
                    columns = byte(at + 7) << 8 | byte(at + 8), samples = byte(at + 9),
                    bits = byte(at + 4);
      if (rows == header_.rows && columns == header_.columns && samples == header_.samples &&
          (bits + 7) / 8 * 8 == header_.type.bits)
        return;
      fail(
          fmt::format(
              "frame {} holds {} x {} pixels of {} x {} bits", frame, rows, columns, samples, bits),
          fmt::format("{} x {} of {} x {}",
                      header_.rows,
                      header_.columns,
                      header_.samples,
                      header_.stored_bits));
    }
    if (kind == 0xda) break;
    at += 2 + (std::size_t{byte(at + 2)} << 8 | byte(at + 3));
  }
  fail(fmt::format("frame {} holds no JPEG", frame), "one; the file may be damaged");
}

void DicomFile::decode_packed(int64_t frame, Frame& decoded) const {
  DcmDataset& item = *file_->getDataset();
  const E_TransferSyntax syntax = item.getOriginalXfer();
  if (is_jpeg2000(syntax)) {
    Image image = decode_jpeg2000(path_, stream_of(frame));
    if (image.shape != std::array<int64_t, 4>{header_.samples, 1, header_.rows, header_.columns}) {
      fail(fmt::format("frame {} holds {} x {} x {} pixels",
                       frame,
                       image.shape[0],
                       image.shape[2],
                       image.shape[3]),
           fmt::format("{} x {} x {}", header_.samples, header_.rows, header_.columns));
    }
    if (static_cast<int>(size_of(image.dtype)) * 8 > header_.type.bits)
      fail(fmt::format("frame {} holds {}", frame, name_of(image.dtype)),
           fmt::format("{} bits at most", header_.type.bits));
    widen(image, header_.type.bits, decoded.cells);
    decoded.is_planar = true;
    return;
  }
  const std::size_t bytes =
      static_cast<std::size_t>(header_.rows * header_.columns * header_.samples) *
      header_.type.size();
  const std::string stream = stream_of(frame);
  if (syntax == EXS_RLELossless) {
    decoded.cells.resize(bytes);
    decoded.is_planar = true;
    if (!decode_rle(stream, header_.type.size(), header_.samples, decoded.cells))
      fail(fmt::format("frame {} is no complete RLE", frame),
           fmt::format("{} bytes of pixels", bytes));
    if (header_.samples == 3 && header_.colours != "RGB") ybr_to_rgb(decoded);
    return;
  }
  check_jpeg(stream, frame);
  decoded.cells.resize(bytes + bytes % 2);  // DCMTK pads to an even size
  DcmElement* element = nullptr;
  item.findAndGetElement(DCM_PixelData, element);
  Uint32 start = 0;
  OFString colours;
  const OFCondition result =
      element->getUncompressedFrame(&item,
                                    static_cast<Uint32>(frame),
                                    start,
                                    decoded.cells.data(),
                                    static_cast<Uint32>(decoded.cells.size()),
                                    colours);
  if (result.bad()) {
    fail(fmt::format("frame {} can't be decoded ({})", frame, result.text()),
         "a complete file; it may be truncated or damaged: copy it again");
  }
  decoded.cells.resize(bytes);
  decoded.is_planar = false;
  if (header_.samples == 3 && colours.compare(0, 3, "YBR") == 0) ybr_to_rgb(decoded);
}

}  // namespace cytra::io
