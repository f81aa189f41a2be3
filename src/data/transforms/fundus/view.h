#pragma once
// The bright disc of a photograph of the retina at a fixed place and size, and contrast that does
// not depend on the light. docs/fundus.md
#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "data/transforms/fundus/find_discs.h"

namespace cytra::data::fundus {

/// Where the disc comes to lie.
struct View {
  int64_t size = 512;  // pixels of a side
  double fill = 1;     // diameter of the disc : size
};

/// Takes a pixel of the view, homogeneous (y,x,1), to the image; (3,3) float64. An ellipse becomes
/// a circle; nothing is turned.
at::Tensor matrix_of(const Disc& disc, const View& view);
/// The discs at their places in the view; 0 outside of the image. Bilinear: of the means over as
/// many pixels as a pixel of the view covers, in float32; nearest: labels, in their type.
/// Shape: (N,C,H,W), N discs -> (N,C,size,size).
at::Tensor to_view(const at::Tensor& images,
                   const std::vector<Disc>& discs,
                   const View& view,
                   bool is_nearest);
/// The reverse, onto images of height x width; 0 outside of the view.
/// Shape: (N,C,size,size) -> (N,C,height,width).
at::Tensor from_view(const at::Tensor& views,
                     const std::vector<Disc>& discs,
                     int64_t height,
                     int64_t width,
                     const View& view,
                     bool is_nearest);
/// 1 within the disc and what the image shows of it, else 0. Without a rim of `margin`, a share of
/// the radius: there the light falls off. Shape: N discs -> (N,1,size,size) float32.
at::Tensor mask_of(const std::vector<Disc>& discs,
                   const View& view,
                   c10::Device device,
                   double margin = 0.01);
/// The largest value that an image of this type can have. Throws: DataError for numbers with a
/// fraction that go beyond 1.
double white_of(const at::Tensor& image);
/// factor (x - blur(x)) + 0.5 within the mask, cut to 0..1; 0 outside. The blur is a Gaussian whose
/// `sigma` is a share of the radius, over what lies within the mask alone, so that the rim does not
/// shine. It is computed on pixels of a quarter of its sigma, in float16 on a GPU.
/// Shape: views (N,C,size,size) of 0..1, mask (N,1,size,size) -> as views, float32.
at::Tensor enhance(const at::Tensor& views,
                   const at::Tensor& mask,
                   const View& view,
                   double sigma = 0.05,
                   double factor = 4);

}  // namespace cytra::data::fundus
