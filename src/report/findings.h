#pragma once
// What a report shows of a validation beside its metrics.
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace cytra::report {

struct Findings {
  struct Image {
    std::string name, truth, predicted;  // these two: where it has a class or numbers
    std::map<std::string, double> metrics;
  };
  /// A class, and the recall and precision at each score, the highest first.
  using Curve = std::pair<std::string, std::vector<std::pair<double, double>>>;

  Image all;  // of all images together
  std::vector<Image> images;
  std::vector<std::string> classes;  // their names in `confusion`
  /// How many of each true class were taken for each class; empty: it is not told.
  std::vector<std::vector<double>> confusion;
  std::vector<Curve> precision_recall;
};

/// HTML of the confusions as a table in shades, and of the curves; "": there are none.
std::string confusion_html(const Findings& findings);
std::string precision_recall_html(const Findings& findings);
/// HTML of the table of images, the worst first by the metric "val/...", else by the loss.
/// `places`: of images whose picture the page has, its id.
std::string images_html(const Findings& findings,
                        const std::string& monitor,
                        bool is_higher_better,
                        const std::map<std::string, std::string>& places);

}  // namespace cytra::report
