#pragma once
// Curves in little memory, and their drawing as SVG.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace cytra::report {

/// A curve of any length: at most 300 pieces of equally many points each. Keeps the extremes.
class Curve {
 public:
  struct Piece {
    double x = 0, y = 0;  // sums over its points
    double low = 0, high = 0;
    int64_t count = 0;
    double mean_x() const { return x / static_cast<double>(count); }
    double mean() const { return y / static_cast<double>(count); }
    void add(const Piece& other);
  };
  /// A value that is not finite is only counted.
  void add(double x, double y);
  const std::vector<Piece>& pieces() const { return pieces_; }
  double last() const { return last_; }
  int64_t not_finite() const { return not_finite_; }

 private:
  std::vector<Piece> pieces_;
  int64_t width_ = 1;  // points of a full piece
  double last_ = 0;
  int64_t not_finite_ = 0;
};

/// An <svg> of curves over steps: each its mean as a line and its extremes as a band, in the colour
/// of class c0, c1, ... The y axis is logarithmic where the highest of positive values is 20 times
/// the median or more: the others would lie on the axis. "" when no curve has a point.
std::string plot_svg(const std::vector<std::pair<std::string, const Curve*>>& curves,
                     double first_step,
                     double last_step);
/// The numbers of the colours, 0 to 11, of a plot's metrics: one for training, one for validation,
/// one for test, as in other plots, where each has one curve; else another for each of the
/// first 12.
std::vector<int> colours_of(const std::vector<std::pair<std::string, const Curve*>>& curves);

}  // namespace cytra::report
