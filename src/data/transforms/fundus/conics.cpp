#include "data/transforms/fundus/conics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "base/lists.h"
#include "base/rng.h"

namespace cytra::data::fundus {
namespace {

constexpr double kHalfTurn = 3.141592653589793;
constexpr int kRounds = 8;       // of a refinement; it converges in three or four
constexpr int kSelections = 3;   // of inliers after a fit
constexpr double kBetter = 0.8;  // an ellipse's cost, as a share of the circle's, to be taken

/// The conic a x^2 + b x y + c y^2 + d x + e y = 1: any ellipse around the origin.
template <class T>
using Conic = std::array<T, 5>;

/// Solves matrix x = right by elimination with pivots. None where the matrix is singular.
template <class T, std::size_t N>
std::optional<std::array<T, N>> solve(std::array<std::array<T, N>, N> matrix,
                                      std::array<T, N> right) {
  for (std::size_t column = 0; column < N; ++column) {
    std::size_t pivot = column;
    for (std::size_t row = column + 1; row < N; ++row) {
      if (std::abs(matrix[row][column]) > std::abs(matrix[pivot][column])) pivot = row;
    }
    if (!(std::abs(matrix[pivot][column]) > T(1e-12))) return std::nullopt;
    std::swap(matrix[column], matrix[pivot]);
    std::swap(right[column], right[pivot]);
    for (std::size_t row = column + 1; row < N; ++row) {
      const T factor = matrix[row][column] / matrix[column][column];
      for (std::size_t k = column; k < N; ++k) matrix[row][k] -= factor * matrix[column][k];
      right[row] -= factor * right[column];
    }
  }
  for (std::size_t row = N; row-- > 0;) {
    for (std::size_t k = row + 1; k < N; ++k) right[row] -= matrix[row][k] * right[k];
    right[row] /= matrix[row][row];
  }
  return right;
}

/// Solves least squares: rows are added, with weights, to N normal equations.
template <std::size_t N>
struct Normal {
  std::array<std::array<double, N>, N> matrix{};
  std::array<double, N> right{};
  void add(const std::array<double, N>& row, double value, double weight = 1) {
    for (std::size_t i = 0; i < N; ++i) {
      for (std::size_t j = 0; j < N; ++j) matrix[i][j] += weight * row[i] * row[j];
      right[i] += weight * row[i] * value;
    }
  }
  std::optional<std::array<double, N>> solution() const { return solve(matrix, right); }
};

/// The frame of points: their mean, and their mean distance from it as the unit.
struct Frame {
  double x = 0, y = 0, unit = 0;
  explicit Frame(const std::vector<Point>& points) {
    for (const Point& p : points) {
      x += p.x;
      y += p.y;
    }
    const double count = std::max<double>(1, static_cast<double>(points.size()));
    x /= count;
    y /= count;
    for (const Point& p : points) unit += std::hypot(p.x - x, p.y - y) / count;
  }
  double u(const Point& p) const { return (p.x - x) / unit; }
  double v(const Point& p) const { return (p.y - y) / unit; }
  Ellipse back(Ellipse ellipse) const {
    ellipse.x = x + unit * ellipse.x;
    ellipse.y = y + unit * ellipse.y;
    ellipse.major *= unit;
    ellipse.minor *= unit;
    return ellipse;
  }
};

Ellipse ellipse_of(const Conic<double>& q) {
  const auto [a, b, c, d, e] = q;
  const double determinant = 4 * a * c - b * b;
  if (!(determinant > 0)) return {};
  Ellipse ellipse;
  ellipse.x = (b * e - 2 * c * d) / determinant;
  ellipse.y = (b * d - 2 * a * e) / determinant;
  // The conic about its centre: a u^2 + b u v + c v^2 = scale, whose axes are those of the matrix.
  const double scale = 1 - (d * ellipse.x + e * ellipse.y) / 2;
  const double mean = (a + c) / 2, spread = std::hypot(a - c, b) / 2;
  const double low = scale / (mean + spread), high = scale / (mean - spread);  // squared
  if (!(low > 0) || !(high > 0) || !std::isfinite(high)) return {};
  ellipse.major = std::sqrt(high);
  ellipse.minor = std::sqrt(low);
  double angle = spread < 1e-12 * std::abs(mean) ? 0 : std::atan2(b, a - c) / 2 + kHalfTurn / 2;
  angle = std::fmod(angle + 2 * kHalfTurn, kHalfTurn);
  ellipse.angle = angle;
  return ellipse;
}

/// The squared distance to first order.
template <class T>
T squared(const Conic<T>& q, T x, T y) {
  const T value = (q[0] * x + q[1] * y + q[3]) * x + (q[2] * y + q[4]) * y - 1;
  const T gx = 2 * q[0] * x + q[1] * y + q[3], gy = 2 * q[2] * y + q[1] * x + q[4];
  return value * value / std::max(gx * gx + gy * gy, T(1e-20));
}

/// The circle through three points as a conic around the origin. None where they are on a line, or
/// the circle is not around the origin.
std::optional<Conic<float>> circle_through(const std::array<Point, 3>& p) {
  std::array<std::array<float, 3>, 3> matrix{};
  std::array<float, 3> right{};
  for (std::size_t i = 0; i < 3; ++i) {  // x^2 + y^2 = m + k x + l y
    matrix[i] = {1, p[i].x, p[i].y};
    right[i] = p[i].x * p[i].x + p[i].y * p[i].y;
  }
  const auto found = solve(matrix, right);
  if (!found || !((*found)[0] > 1e-4F)) return std::nullopt;
  const float s = 1 / (*found)[0];
  return Conic<float>{s, 0, s, -s * (*found)[1], -s * (*found)[2]};
}

std::optional<Conic<float>> ellipse_through(const std::array<Point, 5>& p) {
  std::array<std::array<float, 5>, 5> matrix{};
  std::array<float, 5> right{};
  for (std::size_t i = 0; i < 5; ++i) {
    const auto [x, y] = p[i];
    matrix[i] = {x * x, x * y, y * y, x, y};
    right[i] = 1;
  }
  return solve(matrix, right);
}

/// The limits of a candidate, and its cost for the points, in units of the frame.
class Judge {
 public:
  Judge(const std::vector<Point>& points, double unit, const RansacOptions& options)
      : points_(points), unit_(unit), options_(options) {}
  bool allows(const Ellipse& e) const {
    return e.minor * unit_ >= options_.min_radius && e.major * unit_ <= options_.max_radius &&
           e.minor >= options_.min_axes_ratio * e.major;
  }
  double tolerance(const Ellipse& e) const {
    return std::max(options_.tolerance * std::sqrt(e.major * e.minor), 1 / unit_);
  }
  /// The sum over the points of the squared distance, each at most that of the tolerance.
  float cost(const Conic<float>& conic, const Ellipse& ellipse) const {
    const auto most = static_cast<float>(tolerance(ellipse) * tolerance(ellipse));
    float sum = 0;
    for (const Point& p : points_) sum += std::min(squared(conic, p.x, p.y), most);
    return sum / most;
  }

 private:
  const std::vector<Point>& points_;
  double unit_;
  const RansacOptions& options_;
};

struct Candidate {
  Ellipse ellipse;
  float cost = 0;
};

template <std::size_t N, class Through>
std::optional<Candidate> draw_best(const std::vector<Point>& points,
                                   const Judge& judge,
                                   int64_t draws,
                                   Rng& rng,
                                   const Through& through) {
  std::optional<Candidate> best;
  if (points.size() < N) return best;
  for (int64_t i = 0; i < draws; ++i) {
    std::array<Point, N> drawn{};
    for (Point& p : drawn) p = points[rng.below(points.size())];
    const std::optional<Conic<float>> conic = through(drawn);
    if (!conic) continue;
    const Ellipse ellipse =
        ellipse_of({(*conic)[0], (*conic)[1], (*conic)[2], (*conic)[3], (*conic)[4]});
    if (!judge.allows(ellipse)) continue;
    const float cost = judge.cost(*conic, ellipse);
    if (!best || cost < best->cost) best = Candidate{ellipse, cost};
  }
  return best;
}

/// The inliers among `points` of an ellipse in the same units.
std::vector<std::size_t> inliers_of(const Ellipse& ellipse,
                                    const std::vector<Point>& points,
                                    double tolerance) {
  std::vector<std::size_t> inliers;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (distance_to(ellipse, points[i]) <= tolerance) inliers.push_back(i);
  }
  return inliers;
}

Consensus refine(Ellipse ellipse,
                 const std::vector<Point>& points,
                 const Judge& judge,
                 const auto& fit) {
  Consensus found;
  for (int i = 0; i < kSelections; ++i) {
    const Ellipse fitted = fit(mapped(inliers_of(ellipse, points, judge.tolerance(ellipse)),
                                      [&](std::size_t k) { return points[k]; }));
    if (!judge.allows(fitted)) break;
    ellipse = fitted;
  }
  found.ellipse = ellipse;
  found.inliers = inliers_of(ellipse, points, judge.tolerance(ellipse));
  double sum = 0;
  for (const std::size_t k : found.inliers) sum += std::pow(distance_to(ellipse, points[k]), 2);
  found.rms =
      found.inliers.empty() ? 0 : std::sqrt(sum / static_cast<double>(found.inliers.size()));
  return found;
}

/// The cost that draw_best() minimises, for the result of a refinement.
double cost_of(const Consensus& found, const Judge& judge, std::size_t points) {
  const double share = found.rms / judge.tolerance(found.ellipse);
  const auto inliers = static_cast<double>(found.inliers.size());
  return inliers * share * share + static_cast<double>(points) - inliers;
}

}  // namespace

double distance_to(const Ellipse& ellipse, const Point& point) {
  const double dx = point.x - ellipse.x, dy = point.y - ellipse.y;
  if (ellipse.major == ellipse.minor) return std::abs(std::hypot(dx, dy) - ellipse.major);
  const double cosine = std::cos(ellipse.angle), sine = std::sin(ellipse.angle);
  const double u = cosine * dx + sine * dy, v = cosine * dy - sine * dx;
  const Conic<double> conic{
      1 / (ellipse.major * ellipse.major), 0, 1 / (ellipse.minor * ellipse.minor), 0, 0};
  return std::sqrt(squared(conic, u, v));
}

Ellipse fit_circle(const std::vector<Point>& points) {
  const Frame frame(points);
  if (points.size() < 3 || frame.unit == 0) return {};
  Normal<3> algebraic;
  for (const Point& p : points) {
    const double u = frame.u(p), v = frame.v(p);
    algebraic.add({u, v, 1}, u * u + v * v);
  }
  const auto start = algebraic.solution();
  if (!start) return {};
  double x = (*start)[0] / 2, y = (*start)[1] / 2, r = std::sqrt((*start)[2] + x * x + y * y);
  for (int round = 0; round < kRounds; ++round) {
    Normal<3> step;
    for (const Point& p : points) {
      const double dx = frame.u(p) - x, dy = frame.v(p) - y;
      const double distance = std::max(std::hypot(dx, dy), 1e-12);
      step.add({dx / distance, dy / distance, 1}, distance - r);
    }
    const auto found = step.solution();
    if (!found) break;
    x += (*found)[0];
    y += (*found)[1];
    r += (*found)[2];
  }
  if (!(r > 0) || !std::isfinite(r)) return {};
  Ellipse circle;
  circle.x = x;
  circle.y = y;
  circle.major = circle.minor = r;
  return frame.back(circle);
}

Ellipse fit_ellipse(const std::vector<Point>& points) {
  const Frame frame(points);
  if (points.size() < 5 || frame.unit == 0) return {};
  Conic<double> conic{};
  for (int round = 0; round < kRounds; ++round) {
    Normal<5> normal;
    for (const Point& p : points) {
      const double u = frame.u(p), v = frame.v(p);
      double weight = 1;
      if (round > 0) {  // 1 : squared gradient makes the algebraic distance Sampson's
        const double gx = 2 * conic[0] * u + conic[1] * v + conic[3];
        const double gy = 2 * conic[2] * v + conic[1] * u + conic[4];
        weight = 1 / std::max(gx * gx + gy * gy, 1e-12);
      }
      normal.add({u * u, u * v, v * v, u, v}, 1, weight);
    }
    const auto found = normal.solution();
    if (!found) return {};
    conic = *found;
  }
  return frame.back(ellipse_of(conic));
}

Consensus find_conic(const std::vector<Point>& points,
                     const Point& inside,
                     const RansacOptions& options) {
  double unit = 0;
  for (const Point& p : points) unit += std::hypot(p.x - inside.x, p.y - inside.y);
  unit /= std::max<double>(1, static_cast<double>(points.size()));
  if (!(unit > 0)) return {};
  std::vector<Point> scaled;
  for (const Point& p : points) {
    scaled.push_back(
        {static_cast<float>((p.x - inside.x) / unit), static_cast<float>((p.y - inside.y) / unit)});
  }
  const Judge judge(scaled, unit, options);
  Rng rng(options.seed);
  Consensus found;
  if (const auto circle = draw_best<3>(scaled, judge, options.draws, rng, circle_through))
    found = refine(circle->ellipse, scaled, judge, fit_circle);
  if (options.min_axes_ratio < 1 &&
      std::ssize(points) >= std::max<int64_t>(5, options.min_ellipse_points)) {
    if (const auto drawn = draw_best<5>(scaled, judge, options.draws, rng, ellipse_through)) {
      const Consensus ellipse = refine(drawn->ellipse, scaled, judge, fit_ellipse);
      const bool is_enough = std::ssize(ellipse.inliers) >= options.min_ellipse_points;
      if (is_enough &&
          (found.inliers.empty() ||
           cost_of(ellipse, judge, points.size()) < kBetter * cost_of(found, judge, points.size())))
        found = ellipse;
    }
  }
  found.ellipse.x = inside.x + unit * found.ellipse.x;
  found.ellipse.y = inside.y + unit * found.ellipse.y;
  found.ellipse.major *= unit;
  found.ellipse.minor *= unit;
  found.rms *= unit;
  return found;
}

}  // namespace cytra::data::fundus
