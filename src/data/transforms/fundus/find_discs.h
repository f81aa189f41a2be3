#pragma once
// Finds the bright disc in a photograph of the retina. docs/fundus.md
#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace cytra::data::fundus {

/// How a search for a disc ended.
enum class DiscState { found, too_dark, few_edges, few_inliers };
const char* name_of(DiscState state);  // "found", "too dark", ...

/// A disc, in pixels, whose centres have whole numbers. It is a circle when major equals minor.
struct Disc {
  DiscState state = DiscState::found;
  double y = 0, x = 0;          // centre; may be outside of the image
  double major = 0, minor = 0;  // semi axes
  double angle = 0;             // radians of the major axis, from x towards y, 0 to pi
  double rms = 0;               // distance of the inliers from the outline
  // The visible part: the first and last row and column of pixels that the image's border or a
  // black bar has not cut off.
  double top = 0, bottom = 0, left = 0, right = 0;
  int64_t rays = 0, edges = 0, inliers = 0;  // number of rays; of rays that end at an edge; of
                                             // those at the outline
  double contrast = 0;      // between the disc and its surround, in the image's units
  double noise = 0;         // of a pixel of the search, in the image's units
  int64_t min_inliers = 0;  // the least number that is required
  double radius() const;    // of the circle of the same area
  bool is_found() const { return state == DiscState::found; }
  /// Why the disc was not found, with the numbers; "" when it was found.
  std::string problem() const;
};

struct DiscOptions {
  int64_t seed = 0;
  double min_inliers = 0.3;     // share of the rays that must end at the outline
  double min_radius = 0.15;     // share of the image's smaller side
  double max_radius = 1.0;      // share of the image's larger side
  double min_axes_ratio = 0.7;  // minor : major axis; 1: circles alone
  void visit(auto& v) {
    v("seed", seed, "seed of RANSAC's draws: the same image and seed give the same disc", 0, 1e9);
    v("min_inliers", min_inliers, "share of the rays that must end at the disc's outline", 0.1, 1);
    v("min_radius",
      min_radius,
      "smallest radius of the disc, as a share of the image's smaller side",
      0.01,
      2);
    v("max_radius",
      max_radius,
      "largest radius of the disc, as a share of the image's larger side",
      0.05,
      4);
    v("min_axes_ratio",
      min_axes_ratio,
      "smallest ratio of an ellipse's axes, minor : major, for images with pixels that are not "
      "square; 1: circles only",
      0.3,
      1);
  }
};

/// Finds the retina in each image: edges along rays from the middle of the bright area, then the
/// circle or ellipse that most of them are on (RANSAC). Where the image cuts the disc off (at its
/// border, or by bars of black), the rest of the outline decides. The edges of all images are
/// found together on their device; the rest, with 512 points per image, is done on the CPU in
/// float32. Shape: (N,C,H,W), any type and channels, 32 pixels a side or more. Throws: DataError.
std::vector<Disc> find_discs(const at::Tensor& images, const DiscOptions& options);

}  // namespace cytra::data::fundus
