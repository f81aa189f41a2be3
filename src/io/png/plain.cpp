#include "io/png/plain.h"

#include <algorithm>
#include <cstdlib>
#include <memory>

#include <isa-l/crc.h>
#include <isa-l/igzip_lib.h>

#include "io/pixels/format.h"

namespace cytra::io {
namespace {

const unsigned char* as_bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

uint32_t big_endian(std::string_view four) {
  const unsigned char* b = as_bytes(four);
  return uint32_t{b[0]} << 24 | uint32_t{b[1]} << 16 | uint32_t{b[2]} << 8 | uint32_t{b[3]};
}

/// The content of the IDAT chunks. Empty where a checksum is wrong, or there is a chunk that
/// pixels may depend on, or the end is missing.
std::vector<std::string_view> packed_pixels(std::string_view file) {
  constexpr std::size_t kSignature = 8, kAround = 12;  // length, name and checksum
  std::vector<std::string_view> parts;
  std::string_view before;
  for (std::size_t at = kSignature; file.size() - at >= kAround;) {
    const std::string_view rest = file.substr(at);
    const std::size_t length = big_endian(rest);
    if (length > rest.size() - kAround) return {};
    const std::string_view name = rest.substr(4, 4), data = rest.substr(8, length);
    if (crc32_gzip_refl(0, as_bytes(name), length + 4) != big_endian(rest.substr(8 + length)))
      return {};
    if (name == "IEND") return parts;
    const bool may_be_left_out = (name[0] & 0x20) != 0;
    if (name == "IDAT") {
      if (!parts.empty() && before != "IDAT") return {};
      parts.push_back(data);
    } else if (!may_be_left_out && (name != "IHDR" || at != kSignature)) {
      return {};
    }
    before = name;
    at += kAround + length;
  }
  return {};
}

/// Inflates the bytes in order.
class Inflated {
 public:
  explicit Inflated(const std::vector<std::string_view>& parts) : parts_(parts) {
    isal_inflate_init(state_.get());
    state_->crc_flag = ISAL_ZLIB;
  }
  /// Reads bytes; false where they are damaged, or there are fewer.
  bool read(unsigned char* into, std::size_t count) {
    state_->next_out = into;
    state_->avail_out = static_cast<uint32_t>(count);
    while (state_->avail_out > 0) {
      const uint32_t missing = state_->avail_out;
      if (isal_inflate(state_.get()) < 0) return false;
      if (state_->avail_out < missing) continue;
      if (state_->avail_in > 0 || next_ == parts_.size()) return false;
      const std::string_view part = parts_[next_++];
      state_->next_in = const_cast<unsigned char*>(as_bytes(part));  // only read
      state_->avail_in = static_cast<uint32_t>(part.size());
    }
    return true;
  }
  /// Whether all bytes were read, and their checksum is right.
  bool is_at_end() {
    unsigned char none = 0;
    return !read(&none, 1) && state_->block_state == ISAL_BLOCK_FINISH && state_->avail_in == 0 &&
           next_ == parts_.size();
  }

 private:
  const std::vector<std::string_view>& parts_;
  std::size_t next_ = 0;
  std::unique_ptr<inflate_state> state_ = std::make_unique<inflate_state>();
};

unsigned char nearest_of(int left, int up, int corner) {
  const int to_left = std::abs(up - corner), to_up = std::abs(left - corner);
  const int to_corner = std::abs(left + up - 2 * corner);
  const int other = to_up <= to_corner ? up : corner;
  return static_cast<unsigned char>(to_left <= to_up && to_left <= to_corner ? left : other);
}

/// Decodes a row of filtered pixels to the rows of its channels, where `above` is the row before.
/// The bytes of a sample are swapped.
template <int kChannels, int kSize, class Predict>
void unfilter_by(const Predict& predict,
                 const unsigned char* from,
                 int64_t width,
                 const std::vector<unsigned char*>& into,
                 const std::vector<unsigned char*>& above) {
  constexpr int kBytes = kChannels * kSize;
  unsigned char *out[kBytes], left[kBytes]{}, corner[kBytes]{};
  const unsigned char* over[kBytes];
  for (int b = 0; b < kBytes; ++b) {
    const auto channel = static_cast<std::size_t>(b / kSize);
    out[b] = into[channel] + (kSize - 1 - b % kSize);
    over[b] = above[channel] + (kSize - 1 - b % kSize);
  }
  for (int64_t x = 0; x < width; ++x) {
    for (int b = 0; b < kBytes; ++b) {
      const unsigned char up = over[b][x * kSize];
      left[b] = static_cast<unsigned char>(from[x * kBytes + b] + predict(left[b], up, corner[b]));
      out[b][x * kSize] = left[b];
      corner[b] = up;
    }
  }
}

template <int kChannels, int kSize>
bool unfilter(const unsigned char* from,
              int64_t width,
              const std::vector<unsigned char*>& into,
              const std::vector<unsigned char*>& above) {
  const auto by = [&](const auto& predict) {
    unfilter_by<kChannels, kSize>(predict, from + 1, width, into, above);
    return true;
  };
  switch (*from) {
    case 0:
      return by([](int, int, int) { return 0; });
    case 1:
      return by([](int left, int, int) { return left; });
    case 2:
      return by([](int, int up, int) { return up; });
    case 3:
      return by([](int left, int up, int) { return (left + up) / 2; });
    case 4:
      return by(nearest_of);
    default:
      return false;
  }
}

}  // namespace

bool decode_plain_png(std::string_view file, Image& image) {
  const std::vector<std::string_view> parts = packed_pixels(file);
  if (parts.empty()) return false;
  const std::size_t size = size_of(image.dtype);
  const auto channels = static_cast<std::size_t>(image.shape[0]);
  const auto width = static_cast<std::size_t>(image.shape[3]);
  const std::size_t row_bytes = width * channels * size + 1;
  const auto unfilter_row = channels == 1 ? (size == 1 ? unfilter<1, 1> : unfilter<1, 2>)
                                          : (size == 1 ? unfilter<3, 1> : unfilter<3, 2>);
  constexpr std::size_t kRead = std::size_t{1} << 16;
  const std::size_t most = std::max<std::size_t>(1, kRead / row_bytes);
  std::vector<unsigned char> filtered(most * row_bytes), black(width * size);
  std::vector<unsigned char*> into = channels_of(image), above(channels, black.data());
  Inflated inflated(parts);
  for (std::size_t left = static_cast<std::size_t>(image.shape[2]); left > 0;) {
    const std::size_t count = std::min(most, left);
    if (!inflated.read(filtered.data(), count * row_bytes)) return false;
    for (std::size_t y = 0; y < count; ++y) {
      if (!unfilter_row(filtered.data() + y * row_bytes, static_cast<int64_t>(width), into, above))
        return false;
      above = into;
      for (unsigned char*& row : into) row += width * size;
    }
    left -= count;
  }
  return inflated.is_at_end();
}

}  // namespace cytra::io
