#pragma once
// What metrics of masks share: a number for every class of every image, its means, its sums.
#include <optional>

#include "config/visit.h"
#include "metrics/metric.h"

namespace cytra::metrics {

/// Keys that every metric of masks takes.
struct MaskOptions {
  std::optional<bool> include_background;
  template <class V>
  void visit(V& v) {
    v("include_background",
      include_background,
      "count channel 0 of several; null: as the task's classes need it, without a task as MONAI");
    v("reduction", config::Unused{{"mean", "mean_batch"}}, "the mean and each class's are given");
  }
};

/// Means over images: "name" of each image's mean over the classes that count in it, and of several
/// classes "name_class_1" and so on, by channel. Source: monai.metrics.utils.do_metric_reduction,
/// "mean" and "mean_batch".
class MaskMetric : public Metric {
 public:
  /// `include_background`: where the options leave it open.
  MaskMetric(std::string name, const MaskOptions& options, bool include_background);
  Input input() const final { return Input::masks; }
  void expect(int64_t channels) final;
  void update(const Compared& batch) final;
  /// Throws: DataError when values other than 0 and 1 were given, as class numbers or probabilities
  /// are.
  std::map<std::string, double> compute() const final;
  std::vector<at::Tensor> sums() final { return {sums_}; }
  void reset() final {
    if (sums_.defined()) expect(channels_);
  }

 protected:
  /// (N,K) double, and whether each counts.
  struct Values {
    at::Tensor values, counts;
  };
  /// The classes that count, masked already: (N,K,[D,]H,W), 0 and 1 in any type.
  virtual Values measure(const at::Tensor& prediction,
                         const at::Tensor& truth,
                         const std::vector<std::vector<double>>& spacing_um) const = 0;

 private:
  int64_t first_of(int64_t channels) const { return channels > 1 && !with_background_ ? 1 : 0; }

  std::string name_;
  bool with_background_;
  int64_t channels_ = 0;
  // (K + 2, 2), of the mean and of each class the sum and the number of images; the number of
  // values other than 0 and 1.
  at::Tensor sums_;
};

/// Voxels of each mask (N,K,[D,]H,W) -> (N,K) double.
at::Tensor voxels_of(const at::Tensor& masks);

/// Throws: DataError unless prediction and truth are (N,`channels`,[D,]H,W); 0: any number.
void check_shapes(const std::string& name, const Compared& batch, int64_t channels);

/// How many values are neither 0 nor 1, a scalar; waits for no GPU.
at::Tensor count_others(const Compared& batch);

/// Throws: DataError when there were any.
void check_others(const std::string& name, double others);

}  // namespace cytra::metrics
