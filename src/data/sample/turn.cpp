#include "data/sample/turn.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include <ATen/ATen.h>

#include "data/sample/spatial_options.h"
#include "ops/labels/row_step.h"

namespace cytra::data::spatial {
namespace {

/// Strides in elements, negative along a mirrored axis.
struct Plane {
  int64_t height, width, stride_y, stride_x;
};

template <class T>
void copy_plane(const T* from, T* to, const Plane& plane) {
  if (plane.stride_x == 1) {
    for (int64_t y = 0; y < plane.height; ++y) {
      std::memcpy(to + y * plane.width,
                  from + y * plane.stride_y,
                  static_cast<std::size_t>(plane.width) * sizeof(T));
    }
    return;
  }
  if (plane.stride_x == -1) {
    for (int64_t y = 0; y < plane.height; ++y) {
      const T* end = from + y * plane.stride_y + 1;
      std::reverse_copy(end - plane.width, end, to + y * plane.width);
    }
    return;
  }
  // The copy works in tiles: in a turned plane every row of the result reads a column, with a
  // cache line for each voxel.
  constexpr int64_t kTile = 16;
  for (int64_t top = 0; top < plane.height; top += kTile) {
    const int64_t bottom = std::min(top + kTile, plane.height);
    for (int64_t left = 0; left < plane.width; left += kTile) {
      const int64_t right = std::min(left + kTile, plane.width);
      for (int64_t y = top; y < bottom; ++y) {
        const T* source = from + y * plane.stride_y;
        T* row = to + y * plane.width;
        for (int64_t x = left; x < right; ++x) row[x] = source[x * plane.stride_x];
      }
    }
  }
}

template <class T>
void copy(const T* from, T* to, at::IntArrayRef sizes, at::IntArrayRef strides) {
  if (sizes.size() == 2) return copy_plane(from, to, {sizes[0], sizes[1], strides[0], strides[1]});
  const int64_t step = c10::multiply_integers(sizes.slice(1));
  for (int64_t i = 0; i < sizes[0]; ++i)
    copy(from + i * strides[0], to + i * step, sizes.slice(1), strides.slice(1));
}

}  // namespace

bool Turn::is_identity() const {
  return std::ranges::is_sorted(from) && std::ranges::find(mirrored, true) == mirrored.end();
}

Turn mirror(const char* place, const std::vector<int64_t>& axes, int64_t dims) {
  Turn turn{std::vector<int64_t>(static_cast<std::size_t>(dims)),
            std::vector<bool>(static_cast<std::size_t>(dims))};
  std::iota(turn.from.begin(), turn.from.end(), 0);
  for (const int64_t dim : tensor_dims(place, axes, dims))
    turn.mirrored[static_cast<std::size_t>(dim - 1)] = true;
  return turn;
}

Turn quarter_turns(const char* place, const std::vector<int64_t>& plane, int64_t k, int64_t dims) {
  const auto axes = tensor_dims(place, plane, dims);
  const auto a = static_cast<std::size_t>(axes[0] - 1), b = static_cast<std::size_t>(axes[1] - 1);
  if (a == b) {
    throw ConfigError("{}: [{}, {}] is one axis, expected two", place, plane[0], plane[1]);
  }
  Turn turn = mirror(place, {}, dims);
  for (int64_t done = 0; done < (k % 4 + 4) % 4; ++done) {
    // result[i, j] = image[j, n_b - 1 - i]
    std::swap(turn.from[a], turn.from[b]);
    const bool first = turn.mirrored[a];
    turn.mirrored[a] = !turn.mirrored[b];
    turn.mirrored[b] = first;
  }
  return turn;
}

at::Tensor turned(const at::Tensor& image, const Turn& turn, const std::string& folder) {
  if (turn.is_identity()) return image;
  std::vector<int64_t> sizes{image.size(0)}, strides{image.stride(0)};
  int64_t first = 0;  // the voxel that comes to lie at 0
  for (std::size_t d = 0; d < turn.from.size(); ++d) {
    const int64_t source = turn.from[d] + 1;
    sizes.push_back(image.size(source));
    strides.push_back(turn.mirrored[d] ? -image.stride(source) : image.stride(source));
    if (turn.mirrored[d]) first += (image.size(source) - 1) * image.stride(source);
  }
  at::Tensor result = ops::room_for(sizes, image.scalar_type(), folder);
  if (result.numel() == 0) return result;
  const auto move = [&](auto type) {
    using T = decltype(type);
    copy(static_cast<const T*>(image.const_data_ptr()) + first,
         static_cast<T*>(result.mutable_data_ptr()),
         sizes,
         strides);
  };
  switch (image.element_size()) {
    case 1:
      move(uint8_t{});
      break;
    case 2:
      move(uint16_t{});
      break;
    case 4:
      move(uint32_t{});
      break;
    default:
      move(uint64_t{});
  }
  return result;
}

at::Tensor matrix_of(const Turn& turn, at::IntArrayRef size) {
  const auto dims = std::ssize(turn.from);
  at::Tensor matrix = at::zeros({dims + 1, dims + 1}, at::kDouble);
  auto* rows = matrix.mutable_data_ptr<double>();
  rows[matrix.numel() - 1] = 1;
  for (int64_t d = 0; d < dims; ++d) {
    const int64_t source = turn.from[static_cast<std::size_t>(d)];
    const bool mirrored = turn.mirrored[static_cast<std::size_t>(d)];
    double* row = rows + source * (dims + 1);
    row[d] = mirrored ? -1 : 1;
    if (mirrored) row[dims] = static_cast<double>(size[static_cast<std::size_t>(source)] - 1);
  }
  return matrix;
}

}  // namespace cytra::data::spatial
