#pragma once
// Brings the bright disc in a photograph of the retina to a fixed place and size, and makes its
// contrast independent of the light. docs/fundus.md
#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "data/transforms/fundus/find_discs.h"

namespace cytra::data::fundus {

/// The place of the disc in the view.
struct View {
  int64_t size = 512;  // pixels of a side
  double fill = 1;     // diameter of the disc : size
};

/// The matrix that maps a pixel of the view, homogeneous (y,x,1), to the image; (3,3) float64. An
/// ellipse becomes a circle; there is no rotation.
at::Tensor matrix_of(const Disc& disc, const View& view);
/// Brings the discs to their places in the view; 0 outside of the image. Bilinear: from means over
/// as many pixels as a pixel of the view covers, in float32; nearest: labels, in their type.
/// Shape: (N,C,H,W), N discs -> (N,C,size,size).
at::Tensor to_view(const at::Tensor& images,
                   const std::vector<Disc>& discs,
                   const View& view,
                   bool is_nearest);
/// The mask: 1 inside the visible part of the disc, else 0. A rim of `margin`, a share of the
/// radius, is excluded, as the light falls off there. Shape: N discs -> (N,1,size,size) float32.
at::Tensor mask_of(const std::vector<Disc>& discs,
                   const View& view,
                   c10::Device device,
                   double margin = 0.01);
/// The largest value that an image of this type can have. Throws: DataError for numbers with a
/// fraction that go beyond 1.
double white_of(const at::Tensor& image);
/// Computes factor (x - blur(x)) + 0.5 inside the mask, cut to 0..1; 0 outside. The blur is a
/// Gaussian whose `sigma` is a share of the radius, over pixels inside the mask only, so that the
/// rim is not bright. It is computed on pixels of a quarter of its sigma, in float16 on a GPU.
/// Shape: views (N,C,size,size) of 0..1, mask (N,1,size,size) -> shape of views, float32.
at::Tensor enhance(const at::Tensor& views,
                   const at::Tensor& mask,
                   const View& view,
                   double sigma = 0.05,
                   double factor = 4);

}  // namespace cytra::data::fundus
