#pragma once
// Charts of lines as SVG: of reports, profiles, and the search for a learning rate.
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace cytra::report {

/// "0", "0.25", "12k", "3M".
std::string short_number(double value);

/// A range of values and its marks.
struct ChartAxis {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  bool is_log = false;  // low > 0
  std::string title;
  /// The text of a mark; "" leaves it out; null: a number with the digits that tell marks apart.
  std::function<std::string(double)> label;
  void include(double value);
  /// A twentieth more on both sides; a tenth of the values where they hardly differ, and 0 to 1
  /// where all are 0.
  void add_margin();
  /// Round numbers in the range, about eight: each 1, 2 or 5 times a power of ten, or `stride()`
  /// apart, where the axis is linear.
  std::vector<double> marks() const;
  double stride() const;
  std::string text(double mark) const;
  /// The pixels that the longest of these texts takes.
  double room() const;
  /// 0 at `low`, 1 at `high`; values outside lie at the nearer end.
  double share(double value) const;
};

/// The size of the picture, and of the margins around the lines, in pixels.
struct ChartSize {
  double width = 480, height = 270, left = 52, right = 14, top = 10, bottom = 28;
};

/// Colours are 0 to 5. Each thing lies over what was added before.
class LineChart {
 public:
  using Points = std::vector<std::pair<double, double>>;  // x, y

  LineChart(ChartSize size, ChartAxis x, ChartAxis y);
  void add_line(int colour, const std::string& name, const Points& points);
  /// The area between two lines over the same x.
  void add_band(int colour, const Points& low, const Points& high);
  /// Adds a point; one with a text above it is larger.
  void add_dot(int colour, double x, double y, const std::string& text = "");
  /// The whole height between two x.
  void add_span(int colour, double begin, double end);
  /// A name above the lines, the `place`-th from the left.
  void add_legend(int place, int colour, const std::string& name);

  /// The SVG element, for a page that gives the classes c0 to c5 a colour. data-x and data-y: the
  /// places of both ends of an axis and their values; data-log: y is logarithmic; data-of: what x
  /// is, where it is no step.
  std::string element() const;
  /// A file of its own.
  std::string file() const;

 private:
  double left(double x) const;
  double top(double y) const;
  std::string places(const Points& points) const;
  std::string begin(const std::string& attributes) const;

  ChartSize size_;
  ChartAxis x_, y_;
  std::string body_;
};

}  // namespace cytra::report
