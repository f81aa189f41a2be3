#pragma once
// Fits circles and ellipses to points. Torch-free.
#include <cstddef>
#include <cstdint>
#include <vector>

namespace cytra::data::fundus {

struct Point {
  float x, y;
};

/// An ellipse, or a circle when major equals minor.
struct Ellipse {
  double x = 0, y = 0;          // centre
  double major = 0, minor = 0;  // semi axes, major >= minor; 0: none
  double angle = 0;             // radians of the major axis, from x towards y, 0 to pi
};

/// The distance of a point from the outline, to first order (Sampson's distance); exact for a
/// circle.
double distance_to(const Ellipse& ellipse, const Point& point);

/// The circle with the least sum of squared distances (Gauss-Newton from Kasa's algebraic fit).
/// major and minor are 0 where the points are fewer than three or on a line.
Ellipse fit_circle(const std::vector<Point>& points);
/// The ellipse with the least sum of squared Sampson distances, by reweighted least squares of the
/// conic's equation; its first round is the first of OpenCV's fitEllipse. major and minor are 0
/// where the points are fewer than five, or on another conic.
Ellipse fit_ellipse(const std::vector<Point>& points);

struct RansacOptions {
  uint64_t seed = 0;
  int64_t draws = 400;      // circles, and as many ellipses
  double tolerance = 0.01;  // an inlier's distance, as a share of the radius; at least a pixel
  double min_radius = 1;    // pixels, of both semi axes
  double max_radius = 1e9;
  double min_axes_ratio = 0.7;  // minor : major; 1: circles alone
  // The number of points below which no ellipse is fitted: a smaller part of an outline says
  // little about the axis that it does not cross.
  int64_t min_ellipse_points = 0;
};

struct Consensus {
  Ellipse ellipse;
  std::vector<std::size_t> inliers;  // their indices; empty: no conic within the radii
  double rms = 0;                    // pixels, distance of the inliers
};

/// The circle or ellipse that most points lie on, with the least squared distance (MSAC; Torr and
/// Zisserman 2000), fitted to its inliers. An ellipse is taken only where it is clearly better. The
/// same points and seed give the same result. Candidates are computed in float32, in units of the
/// points' size; the last fit in float64.
/// Units: pixels. `inside`: a point inside the wanted outline.
Consensus find_conic(const std::vector<Point>& points,
                     const Point& inside,
                     const RansacOptions& options);

}  // namespace cytra::data::fundus
