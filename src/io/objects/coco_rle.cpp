#include "io/objects/coco_rle.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"

namespace cytra::io {
namespace {

/// The part of a mask that has pixels inside: first rows and columns, and those after the last.
struct RleBounds {
  int64_t top, bottom, left, right;
};

RleBounds rle_bounds(const unsigned char* mask, int64_t height, int64_t width) {
  RleBounds bounds{height, 0, width, 0};
  const auto is_inside = [](unsigned char pixel) { return pixel != 0; };
  for (int64_t y = 0; y < height; ++y) {
    const unsigned char *begin = mask + y * width, *end = begin + width;
    const unsigned char* first = std::find_if(begin, end, is_inside);
    if (first == end) continue;
    const unsigned char* last = end - 1;
    while (*last == 0) --last;
    bounds.top = std::min(bounds.top, y);
    bounds.bottom = y + 1;
    bounds.left = std::min(bounds.left, static_cast<int64_t>(first - begin));
    bounds.right = std::max(bounds.right, static_cast<int64_t>(last - begin) + 1);
  }
  return bounds;
}

/// Calls span(first, count) for each run of pixels inside, numbered column by column.
void for_spans(const CocoRle& rle, auto span) {
  int64_t pixel = 0;
  for (std::size_t i = 0; i < rle.counts.size(); ++i) {
    if (i % 2 == 1 && rle.counts[i] > 0) span(pixel, int64_t{rle.counts[i]});
    pixel += rle.counts[i];
  }
}

[[noreturn]] void throw_bad_rle(int64_t height, int64_t width, const std::string& what) {
  throw DataError("COCO's run lengths of a mask of {} x {}: {}", height, width, what);
}

}  // namespace

int64_t CocoRle::area() const {
  int64_t area = 0;
  for_spans(*this, [&](int64_t, int64_t count) { area += count; });
  return area;
}

std::array<int64_t, 4> CocoRle::box() const {
  RleBounds bounds{height, 0, width, 0};
  for_spans(*this, [&](int64_t first, int64_t count) {
    const int64_t last = first + count - 1;
    bounds.left = std::min(bounds.left, first / height);
    bounds.right = std::max(bounds.right, last / height + 1);
    const bool goes_on = first / height != last / height;  // over the end of a column
    bounds.top = goes_on ? 0 : std::min(bounds.top, first % height);
    bounds.bottom = goes_on ? height : std::max(bounds.bottom, last % height + 1);
  });
  if (bounds.right == 0) return {0, 0, 0, 0};
  return {bounds.left, bounds.top, bounds.right - bounds.left, bounds.bottom - bounds.top};
}

void CocoRle::paint(uint16_t value, uint16_t* pixels) const {
  for_spans(*this, [&](int64_t first, int64_t count) {
    int64_t x = first / height, y = first % height;
    for (int64_t i = 0; i < count; ++i) {
      pixels[y * width + x] = value;
      if (++y == height) {
        y = 0;
        ++x;
      }
    }
  });
}

CocoRle CocoRle::placed(int64_t top, int64_t left, int64_t rows, int64_t columns) const {
  CocoRle whole{rows, columns, {}};
  int64_t end = 0;  // of the last run inside
  const auto add = [&](int64_t begin, int64_t length) {
    if (begin == end && !whole.counts.empty()) {
      whole.counts.back() += static_cast<uint32_t>(length);
    } else {
      whole.counts.push_back(static_cast<uint32_t>(begin - end));
      whole.counts.push_back(static_cast<uint32_t>(length));
    }
    end = begin + length;
  };
  int64_t at = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const int64_t run_end = at + counts[i];
    if (i % 2 == 0) at = run_end;
    while (at < run_end) {  // column by column
      const int64_t row = at % height, length = std::min(run_end - at, height - row);
      add((left + at / height) * rows + top + row, length);
      at += length;
    }
  }
  if (end < rows * columns) whole.counts.push_back(static_cast<uint32_t>(rows * columns - end));
  return whole;
}

std::string CocoRle::text() const {
  std::string text;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    int64_t value = counts[i];
    if (i > 2) value -= counts[i - 2];
    for (bool goes_on = true; goes_on;) {  // five bits a letter, the lowest first
      int64_t bits = value & 0x1f;
      value >>= 5;
      goes_on = (bits & 0x10) != 0 ? value != -1 : value != 0;
      if (goes_on) bits |= 0x20;
      text += static_cast<char>(bits + 48);
    }
  }
  return text;
}

CocoRle encode_rle(const unsigned char* mask, int64_t height, int64_t width) {
  if (height * width > UINT32_MAX) throw_bad_rle(height, width, "too many pixels");
  CocoRle rle{height, width, {}};
  const RleBounds bounds = rle_bounds(mask, height, width);
  int64_t begun = 0;  // the pixel at which the run under way began
  bool is_inside = false;
  const auto change = [&](int64_t pixel) {
    rle.counts.push_back(static_cast<uint32_t>(pixel - begun));
    begun = pixel;
    is_inside = !is_inside;
  };
  for (int64_t x = bounds.left; x < bounds.right; ++x) {
    if (is_inside && bounds.top > 0) change(x * height);
    for (int64_t y = bounds.top; y < bounds.bottom; ++y) {
      if ((mask[y * width + x] != 0) != is_inside) change(x * height + y);
    }
    if (is_inside && bounds.bottom < height) change(x * height + bounds.bottom);
  }
  if (is_inside && bounds.right < width) change(bounds.right * height);
  if (height * width > begun || rle.counts.empty())
    rle.counts.push_back(static_cast<uint32_t>(height * width - begun));
  return rle;
}

CocoRle parse_rle(std::string_view text, int64_t height, int64_t width) {
  constexpr int kMostBits = 35;  // of a difference of two counts, in whole letters
  CocoRle rle{height, width, {}};
  int64_t sum = 0;
  for (std::size_t i = 0; i < text.size();) {
    int64_t value = 0;
    for (int shift = 0;; shift += 5) {
      const int64_t bits = i < text.size() ? text[i++] - 48 : -1;
      if (bits < 0 || bits > 63 || shift >= kMostBits) throw_bad_rle(height, width, "damaged");
      value |= (bits & 0x1f) << shift;
      if ((bits & 0x20) != 0) continue;
      if ((bits & 0x10) != 0) value -= int64_t{1} << (shift + 5);
      break;
    }
    if (rle.counts.size() > 2) value += rle.counts[rle.counts.size() - 2];
    sum += value;
    if (value < 0 || sum > height * width) throw_bad_rle(height, width, "more pixels");
    rle.counts.push_back(static_cast<uint32_t>(value));
  }
  if (sum != height * width) throw_bad_rle(height, width, fmt::format("{} pixels", sum));
  return rle;
}

}  // namespace cytra::io
