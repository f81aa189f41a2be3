// Windows bitmaps. Source: Microsoft's BITMAPFILEHEADER, BITMAPINFOHEADER and BITMAPV5HEADER.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/error.h"
#include "io/input_file.h"
#include "io/pixels/format.h"

namespace cytra::io {
namespace {

constexpr std::size_t kFileHeader = 14, kCoreHeader = 12, kInfoHeader = 40;
enum BmpCompression : uint32_t { kPlain = 0, kRle8 = 1, kRle4 = 2, kFields = 3, kAlphaFields = 6 };
using BmpColour = std::array<unsigned char, 3>;  // red, green, blue

/// Reads a little-endian number.
uint32_t bmp_number(const std::string& bytes, std::size_t at, std::size_t size) {
  uint32_t value = 0;
  for (std::size_t i = 0; i < size && at + i < bytes.size(); ++i)
    value |= static_cast<uint32_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
  return value;
}

struct BmpHeader {
  int64_t width = 0, height = 0;
  bool is_top_down = false;
  uint32_t bits = 0, compression = kPlain;
  std::size_t pixels = 0;           // where they begin
  std::vector<BmpColour> palette;   // of 1 to 8 bits
  bool is_grey = false;             // all of the palette is
  std::array<uint32_t, 3> masks{};  // of 16 and 32 bits: red, green, blue
  std::size_t row_bytes() const { return (static_cast<std::size_t>(width) * bits + 31) / 32 * 4; }
  bool is_packed() const { return compression == kRle8 || compression == kRle4; }
};

[[noreturn]] void fail_bmp(const std::string& path, const std::string& what) {
  throw DataError(
      path + ": the BMP " + what +
      ", expected a complete one of 1 to 32 bits, plain or run-length encoded; the file "
      "may be damaged, else save it as PNG or TIFF");
}

void read_bmp_palette(const std::string& bytes, std::size_t at, std::size_t used, BmpHeader& bmp) {
  const std::size_t entry = at == kFileHeader + kCoreHeader ? 3 : 4;
  const std::size_t most = std::size_t{1} << bmp.bits,
                    room = bmp.pixels > at ? (bmp.pixels - at) / entry : 0,
                    count = std::min({used == 0 ? most : used, most, room});
  bmp.palette.assign(most, {0, 0, 0});
  bmp.is_grey = true;
  for (std::size_t i = 0; i < count && at + entry * (i + 1) <= bytes.size(); ++i) {
    BmpColour& colour = bmp.palette[i];
    for (std::size_t c = 0; c < 3; ++c)
      colour[c] = static_cast<unsigned char>(bytes[at + entry * i + 2 - c]);
    bmp.is_grey = bmp.is_grey && colour[0] == colour[1] && colour[1] == colour[2];
  }
}

BmpHeader read_bmp_header(const std::string& path, const std::string& bytes) {
  BmpHeader bmp;
  const std::size_t header = bmp_number(bytes, kFileHeader, 4);
  const bool is_core = header == kCoreHeader;
  bmp.pixels = bmp_number(bytes, 10, 4);
  std::size_t used = 0, palette = kFileHeader + header;
  if (is_core) {
    bmp.width = bmp_number(bytes, 18, 2);
    bmp.height = bmp_number(bytes, 20, 2);
    bmp.bits = bmp_number(bytes, 24, 2);
  } else {
    bmp.width = static_cast<int32_t>(bmp_number(bytes, 18, 4));
    bmp.height = static_cast<int32_t>(bmp_number(bytes, 22, 4));
    bmp.bits = bmp_number(bytes, 28, 2);
    bmp.compression = bmp_number(bytes, 30, 4);
    used = bmp_number(bytes, 46, 4);
  }
  bmp.is_top_down = bmp.height < 0;
  bmp.height = std::abs(bmp.height);
  const auto is_any = [&](std::initializer_list<uint32_t> bits) {
    return std::ranges::find(bits, bmp.bits) != bits.end();
  };
  const bool has_fields = bmp.compression == kFields || bmp.compression == kAlphaFields;
  const bool is_known = (bmp.compression == kPlain && is_any({1, 2, 4, 8, 16, 24, 32})) ||
                        (bmp.compression == kRle8 && bmp.bits == 8 && !bmp.is_top_down) ||
                        (bmp.compression == kRle4 && bmp.bits == 4 && !bmp.is_top_down) ||
                        (has_fields && is_any({16, 32}));
  if (!is_known)
    fail_bmp(path, fmt::format("has {} bits and compression {}", bmp.bits, bmp.compression));
  if (bmp.width < 1 || bmp.height < 1) fail_bmp(path, "has no pixels");
  if (bmp.pixels < palette || bmp.pixels > bytes.size()) fail_bmp(path, "is cut off");
  if (bmp.bits == 16) bmp.masks = {0x7C00, 0x3E0, 0x1F};
  if (bmp.bits == 32) bmp.masks = {0xFF0000, 0xFF00, 0xFF};
  for (std::size_t c = 0; has_fields && c < 3; ++c)  // in the header, or after a short one
    bmp.masks[c] = bmp_number(bytes, kFileHeader + kInfoHeader + 4 * c, 4);
  if (bmp.bits <= 8) read_bmp_palette(bytes, palette, used, bmp);
  if (!bmp.is_packed() &&
      bmp.row_bytes() > (bytes.size() - bmp.pixels) / static_cast<std::size_t>(bmp.height))
    fail_bmp(path, "is cut off");
  return bmp;
}

/// Unpacks the palette's numbers of run-length encoded pixels, the bottom row first. Skipped
/// pixels are 0.
std::string unpack_bmp(const BmpHeader& bmp, const std::string& bytes) {
  const auto width = static_cast<std::size_t>(bmp.width);
  std::string numbers(width * static_cast<std::size_t>(bmp.height), '\0');
  std::size_t x = 0, row = 0;
  const bool is_half = bmp.bits == 4;
  const auto put = [&](unsigned value) {
    const std::size_t at = row * width + x++;
    if (x <= width && at < numbers.size()) numbers[at] = static_cast<char>(value);
  };
  const auto byte = [&](std::size_t at) {
    return static_cast<unsigned>(static_cast<unsigned char>(bytes[at]));
  };
  for (std::size_t at = bmp.pixels; at + 1 < bytes.size();) {
    const unsigned count = byte(at), value = byte(at + 1);
    at += 2;
    if (count > 0) {
      for (unsigned i = 0; i < count; ++i)
        put(is_half ? (i % 2 == 0 ? value >> 4 : value & 15) : value);
    } else if (value == 0) {
      x = 0;
      ++row;
    } else if (value == 1) {
      break;
    } else if (value == 2) {
      if (at + 1 >= bytes.size()) break;
      x += byte(at);
      row += byte(at + 1);
      at += 2;
    } else {  // so many pixels as they are, filled up to two bytes
      const std::size_t size = is_half ? (value + 1) / 2 : value;
      if (size > bytes.size() - at) break;
      for (unsigned i = 0; i < value; ++i) {
        const unsigned both = byte(at + (is_half ? i / 2 : i));
        put(!is_half ? both : i % 2 == 0 ? both >> 4 : both & 15);
      }
      at += (size + 1) / 2 * 2;
    }
  }
  return numbers;
}

/// The value of a mask's bits, scaled to 0 to 255.
unsigned char bits_of_mask(uint32_t value, uint32_t mask) {
  if (mask == 0) return 0;
  const uint32_t shift = static_cast<uint32_t>(__builtin_ctz(mask)), most = mask >> shift;
  return static_cast<unsigned char>((uint64_t{(value & mask) >> shift} * 255 + most / 2) / most);
}

BmpColour bmp_pixel(const BmpHeader& bmp, const unsigned char* row, std::size_t x) {
  if (bmp.bits <= 8) {
    const std::size_t first = x * bmp.bits;
    const unsigned number = row[first / 8] >> (8 - bmp.bits - first % 8) & ((1U << bmp.bits) - 1);
    return bmp.palette[number];
  }
  const unsigned char* at = row + x * bmp.bits / 8;
  if (bmp.bits == 24) return {at[2], at[1], at[0]};
  uint32_t value = 0;
  for (std::size_t i = 0; i < bmp.bits / 8; ++i) value |= static_cast<uint32_t>(at[i]) << (8 * i);
  return {bits_of_mask(value, bmp.masks[0]),
          bits_of_mask(value, bmp.masks[1]),
          bits_of_mask(value, bmp.masks[2])};
}

ImageInfo info_of_bmp(const std::string& path, const BmpHeader& bmp, std::size_t file_bytes) {
  ImageInfo info;
  info.shape = {bmp.is_grey ? 1 : 3, 1, bmp.height, bmp.width};
  check_shape(path, info.shape, info.dtype, file_bytes);
  return info;
}

Image decode_bmp(const std::string& path, const std::string& bytes) {
  BmpHeader bmp = read_bmp_header(path, bytes);
  Image image;
  allocate(path, info_of_bmp(path, bmp, bytes.size()).shape, bytes.size(), image);
  const auto width = static_cast<std::size_t>(bmp.width),
             height = static_cast<std::size_t>(bmp.height);
  std::string numbers;
  const auto* rows = reinterpret_cast<const unsigned char*>(bytes.data() + bmp.pixels);
  std::size_t row_bytes = bmp.row_bytes();
  if (bmp.is_packed()) {
    numbers = unpack_bmp(bmp, bytes);
    rows = reinterpret_cast<const unsigned char*>(numbers.data());
    row_bytes = width;
    bmp.palette.resize(256);
    bmp.bits = 8;
  }
  const std::vector<unsigned char*> planes = channels_of(image);
  for (std::size_t y = 0; y < height; ++y) {
    const unsigned char* row = rows + (bmp.is_top_down ? y : height - 1 - y) * row_bytes;
    for (std::size_t x = 0; x < width; ++x) {
      const BmpColour colour = bmp_pixel(bmp, row, x);
      for (std::size_t c = 0; c < planes.size(); ++c) planes[c][y * width + x] = colour[c];
    }
  }
  return image;
}

bool is_bmp(const std::string& head, const std::string&) {
  if (head.compare(0, 2, "BM") != 0 || head.size() < kFileHeader + kCoreHeader) return false;
  const uint32_t header = bmp_number(head, kFileHeader, 4);
  const uint32_t planes = bmp_number(head, header == kCoreHeader ? 22 : 26, 2);
  return (header == kCoreHeader || (header >= kInfoHeader && header <= 124)) && planes == 1;
}

std::unique_ptr<ImageReader> open_bmp(const std::string& path, const Selection& selection) {
  const auto bytes = std::make_shared<std::string>(read_input(path));
  const ImageInfo info = info_of_bmp(path, read_bmp_header(path, *bytes), bytes->size());
  return std::make_unique<WholeReader>(
      path, info, selection, [path, bytes] { return decode_bmp(path, *bytes); });
}

const bool bmp_is_known = add_format("bmp", [](Format& bmp) {
  bmp.title = "BMP";
  bmp.rank = 80;
  bmp.endings = {".bmp"};
  bmp.media_type = "image/bmp";
  bmp.probe = is_bmp;
  bmp.open = open_bmp;
  bmp.written_as = "png";
});

}  // namespace

}  // namespace cytra::io
