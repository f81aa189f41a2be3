// Reads GIF, 87a and 89a: one image of up to 256 colours, which is used for masks. Source:
// CompuServe's specification of GIF89a.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/error.h"
#include "io/input_file.h"
#include "io/pixels/format.h"

namespace cytra::io {
namespace {

constexpr std::size_t kGifHeader = 13;  // signature, size of the screen, its palette
constexpr unsigned kMostCodes = 4096;
using GifColour = std::array<unsigned char, 3>;

[[noreturn]] void fail_gif(const std::string& path, const std::string& what) {
  throw DataError(path + ": the GIF " + what +
                  ", expected a complete one of one image; the file may be damaged");
}

/// Reads the file's bytes in order. Throws: DataError after the last one.
class GifBytes {
 public:
  GifBytes(const std::string& path, const std::string& bytes) : path_(path), bytes_(bytes) {}
  unsigned byte() {
    if (at_ >= bytes_.size()) fail_gif(path_, "is cut off");
    return static_cast<unsigned char>(bytes_[at_++]);
  }
  unsigned word() {
    const unsigned low = byte();
    return low | byte() << 8;
  }
  void skip(std::size_t count) {
    if (count > bytes_.size() - at_) fail_gif(path_, "is cut off");
    at_ += count;
  }
  bool is_at_end() const { return at_ >= bytes_.size(); }
  void skip_blocks() {
    while (const unsigned size = byte()) skip(size);
  }
  std::string blocks() {
    std::string all;
    while (const unsigned size = byte()) {
      const std::size_t begin = at_;
      skip(size);
      all.append(bytes_, begin, size);
    }
    return all;
  }
  std::vector<GifColour> palette(unsigned flags) {
    std::vector<GifColour> colours(std::size_t{2} << (flags & 7));
    for (GifColour& colour : colours)
      for (unsigned char& value : colour) value = static_cast<unsigned char>(byte());
    return colours;
  }

 private:
  const std::string& path_;
  const std::string& bytes_;
  std::size_t at_ = 0;
};

struct Gif {
  int64_t width = 0, height = 0;  // of the screen
  int64_t left = 0, top = 0, image_width = 0, image_height = 0;
  bool is_interlaced = false;
  unsigned background = 0, code_bits = 0;
  std::vector<GifColour> palette;
  std::string codes;
};

Gif read_gif(const std::string& path, const std::string& bytes) {
  GifBytes in(path, bytes);
  in.skip(6);
  Gif gif;
  gif.width = in.word();
  gif.height = in.word();
  const unsigned flags = in.byte();
  gif.background = in.byte();
  in.skip(1);
  if ((flags & 0x80) != 0) gif.palette = in.palette(flags);
  bool has_image = false;
  while (!in.is_at_end()) {
    const unsigned kind = in.byte();
    if (kind == 0x3B) break;  // the end
    if (kind == 0x21) {       // an extension: how it is shown, comments
      in.skip(1);
      in.skip_blocks();
      continue;
    }
    if (kind != 0x2C) fail_gif(path, fmt::format("has a block of the unknown kind {}", kind));
    if (has_image) {
      throw DataError(path +
                      ": an animation of several images, expected one; convert it to a video "
                      "(ffmpeg -i in.gif out.mp4), or save each image as PNG");
    }
    has_image = true;
    gif.left = in.word();
    gif.top = in.word();
    gif.image_width = in.word();
    gif.image_height = in.word();
    const unsigned image_flags = in.byte();
    gif.is_interlaced = (image_flags & 0x40) != 0;
    if ((image_flags & 0x80) != 0) gif.palette = in.palette(image_flags);
    gif.code_bits = in.byte();
    gif.codes = in.blocks();
  }
  if (!has_image || gif.image_width < 1 || gif.image_height < 1) fail_gif(path, "has no image");
  if (gif.palette.empty()) fail_gif(path, "has no palette");
  if (gif.code_bits < 1 || gif.code_bits > 8)
    fail_gif(path, fmt::format("has codes of {} bits", gif.code_bits));
  if (gif.left + gif.image_width > gif.width || gif.top + gif.image_height > gif.height)
    fail_gif(path, "has an image beyond its screen");
  return gif;
}

/// Decodes the palette's numbers, in the order of the file. Throws: DataError where there are
/// fewer than `count`.
std::string decode_codes(const std::string& path, const Gif& gif, std::size_t count) {
  std::array<uint16_t, kMostCodes> before{};
  std::array<unsigned char, kMostCodes> last{};
  std::string numbers, reversed;
  numbers.reserve(count);
  const unsigned clear = 1U << gif.code_bits, end = clear + 1;
  unsigned bits = gif.code_bits + 1, next = end + 1, previous = kMostCodes;
  uint32_t buffer = 0;
  unsigned held = 0;
  for (std::size_t at = 0; numbers.size() < count;) {
    while (held < bits) {
      if (at >= gif.codes.size()) fail_gif(path, "is cut off");
      buffer |= static_cast<uint32_t>(static_cast<unsigned char>(gif.codes[at++])) << held;
      held += 8;
    }
    const unsigned code = buffer & ((1U << bits) - 1);
    buffer >>= bits;
    held -= bits;
    if (code == end) fail_gif(path, "is cut off");
    if (code == clear) {
      bits = gif.code_bits + 1;
      next = end + 1;
      previous = kMostCodes;
      continue;
    }
    const bool is_new = code == next && previous < kMostCodes;
    if (code > next || (code == next && !is_new) || (previous == kMostCodes && code > clear))
      fail_gif(path, "has a wrong code");
    reversed.clear();
    unsigned one = is_new ? previous : code;
    for (; one > end; one = before[one]) reversed += static_cast<char>(last[one]);
    reversed += static_cast<char>(one);
    if (previous < kMostCodes && next < kMostCodes) {
      before[next] = static_cast<uint16_t>(previous);
      last[next] = static_cast<unsigned char>(one);
      ++next;
      if (next == 1U << bits && bits < 12) ++bits;
    }
    numbers.append(reversed.rbegin(), reversed.rend());
    if (is_new) numbers += static_cast<char>(one);
    previous = code;
  }
  numbers.resize(count);
  return numbers;
}

/// The places of an interlaced image's rows: every 8th, then those between, and so on.
std::vector<int64_t> rows_of(const Gif& gif) {
  std::vector<int64_t> rows;
  constexpr std::array<std::array<int64_t, 2>, 4> kPasses = {{{0, 8}, {4, 8}, {2, 4}, {1, 2}}};
  for (const auto& [first, step] : kPasses) {
    if (!gif.is_interlaced && first > 0) break;
    for (int64_t row = first; row < gif.image_height; row += gif.is_interlaced ? step : 1)
      rows.push_back(row);
  }
  return rows;
}

Image decode_gif(const std::string& path, const std::string& bytes) {
  const Gif gif = read_gif(path, bytes);
  check_shape(path, {3, 1, gif.height, gif.width}, Dtype::u8, bytes.size());
  check_memory(path, "the image", 4.0 * static_cast<double>(gif.width * gif.height));
  const auto width = static_cast<std::size_t>(gif.image_width);
  const std::string numbers =
      decode_codes(path, gif, width * static_cast<std::size_t>(gif.image_height));
  const auto background = gif.background < gif.palette.size() ? gif.background : 0U;
  std::string screen(static_cast<std::size_t>(gif.width * gif.height),
                     static_cast<char>(background));
  std::size_t from = 0;
  for (const int64_t row : rows_of(gif)) {
    std::copy_n(numbers.begin() + static_cast<std::ptrdiff_t>(from),
                gif.image_width,
                screen.begin() + (gif.top + row) * gif.width + gif.left);
    from += width;
  }
  std::array<bool, 256> is_used{};
  for (const char number : screen) is_used[static_cast<unsigned char>(number)] = true;
  std::vector<GifColour> palette = gif.palette;
  palette.resize(256, {0, 0, 0});
  bool is_grey = true;
  for (std::size_t i = 0; i < palette.size(); ++i)
    is_grey = is_grey &&
              (!is_used[i] || (palette[i][0] == palette[i][1] && palette[i][1] == palette[i][2]));
  Image image;
  allocate(path, {is_grey ? 1 : 3, 1, gif.height, gif.width}, bytes.size(), image);
  const std::vector<unsigned char*> planes = channels_of(image);
  for (std::size_t p = 0; p < screen.size(); ++p) {
    for (std::size_t c = 0; c < planes.size(); ++c)
      planes[c][p] = palette[static_cast<unsigned char>(screen[p])][c];
  }
  return image;
}

bool is_gif(const std::string& head, const std::string&) {
  return head.size() >= kGifHeader &&
         (head.compare(0, 6, "GIF87a") == 0 || head.compare(0, 6, "GIF89a") == 0);
}

std::unique_ptr<ImageReader> open_gif(const std::string& path, const Selection& selection) {
  const auto image = std::make_shared<Image>(decode_gif(path, read_input(path)));
  ImageInfo info;  // only what is used of the palette says whether it is grey
  info.shape = image->shape;
  return std::make_unique<WholeReader>(path, info, selection, [image] { return *image; });
}

const bool gif_is_known = add_format("gif", [](Format& gif) {
  gif.title = "GIF";
  gif.rank = 85;
  gif.endings = {".gif"};
  gif.media_type = "image/gif";
  gif.probe = is_gif;
  gif.open = open_gif;
  gif.written_as = "png";
});

}  // namespace

}  // namespace cytra::io
