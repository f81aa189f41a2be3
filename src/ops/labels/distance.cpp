#include "ops/labels/distance.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "base/error.h"
#include "ops/labels/lines.h"
#include "ops/labels/volume.h"

namespace cytra::ops {
namespace {

constexpr float kFar = std::numeric_limits<float>::infinity();

/// Squared distances within each row.
void along_rows(const uint8_t* mask, float* squares, int64_t rows, int64_t width, double step) {
  at::parallel_for(0, rows, std::max<int64_t>(1, 65536 / width), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const uint8_t* in = mask + row * width;
      float* out = squares + row * width;
      int64_t last = -1;  // the last voxel that is 0
      for (int64_t x = 0; x < width; ++x) {
        if (in[x] == 0) last = x;
        const double distance = static_cast<double>(x - last) * step;
        out[x] = last < 0 ? kFar : static_cast<float>(distance * distance);
      }
      last = width;
      for (int64_t x = width - 1; x >= 0; --x) {
        if (in[x] == 0) last = x;
        if (last == width) continue;
        const double distance = static_cast<double>(last - x) * step;
        out[x] = std::min(out[x], static_cast<float>(distance * distance));
      }
    }
  });
}

/// The parabolas of one line that are the lowest somewhere.
struct Envelope {
  std::vector<double> height,
      from;  // of each, with its apex's square; where it begins to be lowest
  std::vector<int64_t> apex;
  explicit Envelope(int64_t length)
      : height(static_cast<std::size_t>(length)),
        from(static_cast<std::size_t>(length)),
        apex(static_cast<std::size_t>(length)) {}

  /// line[i] = min over k of line[k] + (step * (i - k))^2, for [begin, end).
  void lower(float* line, int64_t begin, int64_t end, double step) {
    const double scale = step * step;
    int64_t top = -1;
    for (int64_t i = begin; i < end; ++i) {
      if (line[i] == kFar) continue;
      const auto place = static_cast<double>(i);
      const double own = static_cast<double>(line[i]) / scale + place * place;
      double start = -std::numeric_limits<double>::infinity();
      for (; top >= 0; --top) {
        const auto t = static_cast<std::size_t>(top);
        start = (own - height[t]) / static_cast<double>(2 * (i - apex[t]));
        if (start > from[t]) break;
        start = -std::numeric_limits<double>::infinity();
      }
      const auto t = static_cast<std::size_t>(++top);
      height[t] = own;
      from[t] = start;
      apex[t] = i;
    }
    if (top < 0) return;
    values.assign(line + begin, line + end);
    std::size_t t = 0;
    for (int64_t i = begin; i < end; ++i) {
      while (t < static_cast<std::size_t>(top) && from[t + 1] < static_cast<double>(i)) ++t;
      const double offset = static_cast<double>(i - apex[t]) * step;
      line[i] =
          static_cast<float>(offset * offset) + values[static_cast<std::size_t>(apex[t] - begin)];
    }
  }
  std::vector<float> values;
};

/// A voxel that is 0 hides what is behind it, so runs between two zeros are independent lines.
void along_line(float* line, int64_t length, double step, Envelope& envelope) {
  for (int64_t i = 0; i < length;) {
    if (line[i] == 0) {
      ++i;
      continue;
    }
    const int64_t begin = std::max<int64_t>(i - 1, 0);
    while (i < length && line[i] != 0) ++i;
    envelope.lower(line, begin, std::min(i + 1, length), step);
  }
}

/// Transforms along an axis of `length` voxels that lie `stride` apart; there are `outer` groups.
void along_columns(float* squares, int64_t outer, int64_t length, int64_t stride, double step) {
  const auto some = [&](float* from, int64_t groups, int64_t begin, int64_t end) {
    Envelope envelope(length);
    for_lines(from, groups, length, stride, begin, end, [&](float* line) {
      along_line(line, length, step, envelope);
    });
  };
  if (outer > 1) {
    at::parallel_for(0, outer, 1, [&](int64_t begin, int64_t end) {
      some(squares + begin * length * stride, end - begin, 0, stride);
    });
  } else {
    at::parallel_for(
        0, stride, 16, [&](int64_t begin, int64_t end) { some(squares, 1, begin, end); });
  }
}

}  // namespace

at::Tensor distance_transform(const at::Tensor& mask, const std::vector<double>& sampling) {
  const at::Tensor volume = as_volume(mask.ne(0), at::kBool).view(at::kByte);
  if (sampling.size() > 1 && std::ssize(sampling) != mask.dim()) {
    throw DataError("sampling has {} numbers, expected one or one for each of {} axes",
                    sampling.size(),
                    mask.dim());
  }
  std::vector<double> step(3, sampling.empty() ? 1 : sampling[0]);
  if (sampling.size() > 1) std::copy(sampling.rbegin(), sampling.rend(), step.rbegin());
  at::Tensor distances = at::empty(volume.sizes(), at::kFloat);
  if (volume.numel() == 0) return distances.reshape(mask.sizes());
  float* squares = distances.mutable_data_ptr<float>();
  const int64_t depth = volume.size(0), height = volume.size(1), width = volume.size(2);
  along_rows(volume.const_data_ptr<uint8_t>(), squares, depth * height, width, step[2]);
  if (height > 1) along_columns(squares, depth, height, width, step[1]);
  if (depth > 1) along_columns(squares, 1, depth, height * width, step[0]);
  at::parallel_for(0, volume.numel(), 65536, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      squares[i] = std::sqrt(squares[i]);  // at::sqrt's: +-1 ulp
  });
  return distances.reshape(mask.sizes());
}

at::Tensor step_distance(const at::Tensor& mask, int64_t connectivity) {
  const at::Tensor volume = as_volume(mask.ne(0), at::kBool);
  const at::Tensor distances = at::where(volume, kFar, 0.F).to(at::kFloat).contiguous();
  float* const all = distances.mutable_data_ptr<float>();
  const auto size = volume.sizes();
  const std::vector<Offset> around = neighbours(checked_connectivity(connectivity, mask.dim()));
  // From the first voxel to the last, then back: with the neighbours that were passed already.
  for (const int64_t sign : {1, -1}) {
    const auto voxel = [&](int64_t z, int64_t y, int64_t x) -> float& {
      const auto place = [&](int64_t i, int64_t d) { return sign > 0 ? i : size[d] - 1 - i; };
      return all[(place(z, 0) * size[1] + place(y, 1)) * size[2] + place(x, 2)];
    };
    for (int64_t z = 0; z < size[0]; ++z) {
      for (int64_t y = 0; y < size[1]; ++y) {
        for (int64_t x = 0; x < size[2]; ++x) {
          float& own = voxel(z, y, x);
          for (const Offset& to : around) {
            const int64_t u = z + to[0], v = y + to[1], w = x + to[2];
            if (to > Offset{} || u < 0 || v < 0 || w < 0 || v >= size[1] || w >= size[2]) continue;
            own = std::min(own, voxel(u, v, w) + 1);
          }
        }
      }
    }
  }
  return distances.reshape(mask.sizes());
}

at::Tensor distance_transforms(const at::Tensor& masks) {
  at::Tensor squares = at::where(masks.ne(0), kFar, 0.F).to(at::kFloat);
  for (int64_t dim = 1; dim < masks.dim(); ++dim) {
    const at::Tensor before = squares.clone();
    const int64_t length = masks.size(dim);
    for (int64_t far = 1; far < length; ++far) {
      const at::Tensor raised = before + static_cast<double>(far * far);
      for (const int64_t from : {int64_t{0}, far}) {  // seen from the one side, and the other
        at::Tensor place = squares.narrow(dim, far - from, length - far);
        at::minimum_out(place, place, raised.narrow(dim, from, length - far));
      }
    }
  }
  return squares.sqrt_();
}

}  // namespace cytra::ops
