#pragma once
// The passes over memory of a sliding window: windows are gathered, their predictions summed with
// weights, and the sums finished. On a CPU by kernels of our own, elsewhere by ATen.
#include <array>
#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace cytra::ops {

/// One axis of an image and of its windows.
struct WindowAxis {
  int64_t size = 1;                // of the image
  int64_t roi = 1;                 // of a window
  int64_t before = 0;              // padding in front of the image
  std::vector<int64_t> starts{0};  // of the windows, ascending, in the padded image
  std::vector<int64_t> source{0};  // of each voxel of the padded image: its place in the image; -1:
                                   // the pad value
  std::vector<float> weights{1};   // factor of a window's weight, (roi)
};

/// Windows over an image: Z, Y, X. Of a 2D image the middle axis has one voxel, of a line the first
/// two. Windows are numbered in C order.
struct WindowGrid {
  std::array<WindowAxis, 3> axes;
  float floor = 0;   // least weight; the others are products of the axes' factors
  at::Tensor map;    // weights of a window, (z,y,x) float32 on the sums' device, in place of the
                     // factors; must be there where that is no CPU
  at::Tensor table;  // window_table() on the image's device; made at each gather where it is not
                     // there
  int64_t windows() const;
  /// Window w's number among the starts of each axis.
  std::array<int64_t, 3> place(int64_t w) const;
  /// The rows (first axis) that are final once all windows of the first axis' start `i` are summed:
  /// from, to.
  std::array<int64_t, 2> final_rows(int64_t i) const;
};

/// A window's part in the image along each axis.
struct WindowBox {
  std::array<int64_t, 3> from, to;  // in the image
  std::array<int64_t, 3> skip;      // voxels of the window in front of `from`
  /// Voxels whose every coordinate is at least this are covered by no earlier window.
  std::array<int64_t, 3> fresh;
};
WindowBox box_of(const WindowGrid& grid, int64_t w);

/// The weights of a window (z,y,x) float32, on a CPU.
at::Tensor window_map(const WindowGrid& grid);
/// The weights on `device`. Those of the newest few kinds of windows are kept: a run over many
/// images makes them once, and the host does not wait for a copy at each image.
at::Tensor window_map(const WindowGrid& grid, c10::Device device);

/// Where windows begin and what their voxels come from, (n) int32 on `device`: each axis' starts,
/// then each axis' source. A GPU's copy is on its way when this returns.
at::Tensor window_table(const WindowGrid& grid, c10::Device device);

/// Copies windows first, first+1, ... of an image into `windows`.
/// Shape: image (C,L,Y,X), row z at z modulo L, any type; windows (S,C,z,y,x) float32.
void gather(const at::Tensor& image,
            const WindowGrid& grid,
            int64_t first,
            double pad_value,
            const at::Tensor& windows);

/// Adds the predictions of windows first, first+1, ... to `sums`, with their weights. What none of
/// the windows before covers is set, so sums may begin with any values.
/// Shape: values (S,K,z,y,x) float32, bfloat16 or float16, any strides; sums (K,L,Y,X) float32,
/// row z at z modulo L.
void accumulate(const at::Tensor& values,
                const WindowGrid& grid,
                int64_t first,
                const at::Tensor& sums);

/// What is made of sums.
struct Finish {
  enum class Kind {
    logits,
    sigmoid,
    softmax,
    argmax,
    threshold,
    entropy,        // of the softmax, in nats: 0 to log K
    binary_entropy  // of each sigmoid: 0 to log 2
  } kind = Kind::logits;
  double threshold = 0.5;            // of the probability, for Kind::threshold
  at::ScalarType type = at::kFloat;  // of the result; uint8 of sigmoid and softmax: round(255 p)
  /// A linear layer that comes first, (K',K) and (K') float32; undefined: none.
  at::Tensor weight = {}, bias = {};
  /// `given`: of the sums.
  int64_t channels(int64_t given) const {
    if (kind == Kind::argmax || kind == Kind::entropy) return 1;
    return weight.defined() ? weight.size(0) : given;
  }
};

/// Divides rows [begin, end) of the sums by their windows' weights and finishes them, in one pass.
/// Shape: sums (K,L,Y,X); out (K',end-begin,Y,X) of finish.type; may be these very rows of `sums`.
/// `bad`, (1) int64 on the sums' device, grows by how many sums are NaN or infinite; undefined:
/// they are not counted. Does not wait for a device.
void finish_rows(const at::Tensor& sums,
                 const WindowGrid& grid,
                 int64_t begin,
                 int64_t end,
                 const Finish& finish,
                 const at::Tensor& out,
                 const at::Tensor& bad);

/// sums (N,K,...) / weights (1,1,...) (undefined: already divided), then `finish`, in one pass ->
/// (N,K,...) of finish.type; entropy (N,1,...), and argmax, of equal ones the first. Float32.
at::Tensor finish(const at::Tensor& sums, const at::Tensor& weights, const Finish& finish);

}  // namespace cytra::ops
