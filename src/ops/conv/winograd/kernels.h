#pragma once
// Inner loops of Winograd's convolution (ops/conv/winograd/winograd.cpp): three transforms and two
// matrix products. A tile of the output is 4x4 pixels of a plane, and 1, 2 or 4 planes. It comes
// from a patch of the input of 6x6 pixels of 1, 4 or 6 planes, and so many points are multiplied:
// `Depth` names which. Pixels are given by their addresses, so that those outside of an image can
// be zeros that lie elsewhere; the channels of a pixel lie beside each other. Short floats are
// widened as they are read and rounded as they are written.
#include <cstddef>
#include <cstdint>

namespace cytra::ops::cpu {

struct WinogradKernels {
  /// What a tile is along the depth. Planes of the output and of the input.
  struct Depth {
    int64_t out, in;
  };
  static constexpr Depth kDepths[] = {{1, 1}, {2, 4}, {4, 6}};
  static constexpr int64_t kOut = 4, kIn = 6;  // pixels of a side of a tile and of its patch

  /// The output's pixels that a tile has, which are fewer at an image's edge.
  struct Tile {
    std::byte* pixels;                         // the first one
    int64_t plane_step, row_step, pixel_step;  // in bytes
    int64_t planes, rows, columns;
    bool past_caches;  // the values aren't needed soon; those of float32 are aligned to 64 bytes
  };
  /// Where the weights of one input and output channel lie, and the steps to others.
  struct Weights {
    const float* first;
    int64_t in_step, out_step, plane_step, row_step, column_step;
  };

  /// The transforms from and to pixels of one type.
  struct PixelTransforms {
    /// A patch to points: to[point * step + channel].
    void (*input)(const std::byte* const* pixels, int64_t channels, float* to, int64_t step);
    /// The gradient of a tile to points: to[point * step + channel].
    void (*grad)(const std::byte* const* pixels, int64_t channels, float* to, int64_t step);
    /// Points to a tile: from[point * step + channel], and the bias where it isn't null.
    void (*output)(
        const float* from, int64_t step, int64_t channels, const float* bias, const Tile& tile);
  };
  struct Transforms {
    PixelTransforms of_floats, of_bfloats, of_halves;
    /// The weights of one input channel to points: to[point * step + channel] of the output's.
    void (*weights)(const Weights& from, int64_t channels, float* to, int64_t step);
    /// The sums of points to the weights' gradient: the reverse of weights().
    void (*weight_grad)(const float* from, int64_t step, int64_t channels, const Weights& to);
  };
  Transforms transforms[3];  // of kDepths

  /// Columns of a panel of `channels` output channels, a multiple of 16, and the rows that
  /// multiply() takes at once.
  int64_t (*panel)(int64_t channels);
  int64_t (*rows)(int64_t panel);
  /// to[row][column] = sum over depth of a[row][depth] * b[depth][column]: rows of a lie `depth`
  /// apart, those of b and of `to` a panel apart. `rows` is a multiple of what rows() says.
  void (*multiply)(
      const float* a, const float* b, float* to, int64_t rows, int64_t depth, int64_t panel);
  /// to[row][column] += sum over depth of a[depth][row] * b[depth][column], for `rows` (multiples
  /// of 16) x `columns` (too) values of matrices whose rows lie these steps apart.
  void (*add_products)(const float* a,
                       int64_t a_step,
                       const float* b,
                       int64_t b_step,
                       float* to,
                       int64_t to_step,
                       int64_t rows,
                       int64_t columns,
                       int64_t depth);
};

/// The kernels for this processor's instruction set, which ATen chose. Null: none.
const WinogradKernels* winograd_kernels();

}  // namespace cytra::ops::cpu
