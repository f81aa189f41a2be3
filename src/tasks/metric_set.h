#pragma once
// The metrics of a task, each under the user's name for it.
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "config/node.h"
#include "io/image.h"
#include "metrics/metric.h"

namespace cytra::report {
struct Findings;
}

namespace cytra::tasks {

/// Voxel sizes of an image of `dims` spatial dimensions.
std::vector<double> spacing_of(const io::Geometry& geometry, int64_t dims);

class MetricSet {
 public:
  using Input = metrics::Metric::Input;
  /// `named`: a map; null entries are left out. `inputs`: those that there are predictions for.
  /// `channels`: K of the predictions, of boxes their classes; objects have one. Throws:
  /// ConfigError for another metric, naming those that fit.
  MetricSet(const config::Node& named, const std::vector<Input>& inputs, int64_t channels);
  /// Adds a batch of whole images, as `compared` gives it for the inputs that are asked for.
  void update(const std::function<metrics::Compared(Input)>& compared);
  /// The metrics by their own names; if two have the same name, the second one's begins with the
  /// user's.
  std::map<std::string, double> compute() const;
  void reset();
  /// Counts which of the classes is taken for which, too, of 32 or less; show() alone tells it.
  void count_confusions(int64_t classes);
  /// Adds the confusions and curves to what a report shows; classes are numbers.
  void show(report::Findings& findings) const;
  /// The sums of the metrics, for several processes to add up.
  std::vector<at::Tensor> sums() const;
  /// What no sums tell: Metric::gather() of each.
  void gather(const std::function<at::Tensor(const at::Tensor& rows)>& of_all);

 private:
  std::map<std::string, std::shared_ptr<metrics::Metric>> metrics_;  // "": is only shown
};

}  // namespace cytra::tasks
