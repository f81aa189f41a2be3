#pragma once
// What metrics of masks share: which channels and voxels count, sums over images, means of classes.
#include <optional>

#include "config/visit.h"
#include "metrics/metric.h"

namespace cytra::metrics {

/// Keys that every metric of masks takes.
struct MaskOptions {
  std::optional<bool> include_background;
  void visit(auto& v) {
    v("include_background",
      include_background,
      "count channel 0 of several; null: as the task's classes need it, without a task as MONAI");
    v("reduction", config::Unused{{"mean", "mean_batch"}}, "the mean and each class's are given");
  }
};

/// Adds up what an image's classes give.
class MaskMetric : public Metric {
 public:
  /// `include_background`: the default, where the options leave it open.
  MaskMetric(std::string name, const MaskOptions& options, bool include_background)
      : name_(std::move(name)),
        with_background_(options.include_background.value_or(include_background)) {}
  Input input() const final { return Input::masks; }
  void expect(int64_t channels) final;
  void update(const Compared& batch) final;
  std::vector<at::Tensor> sums() final { return {sums_, others_}; }
  void reset() final {
    if (sums_.defined()) expect(channels_);
  }

 protected:
  /// The shape of the sums, for this number of classes that count.
  virtual std::vector<int64_t> shape(int64_t classes) const = 0;
  /// What a batch adds to the sums, double. Its masks are those of the classes that count, 0 and 1
  /// in any type, and 0 outside of the batch's mask.
  virtual at::Tensor count(const Compared& batch) const = 0;
  /// The sums, on the host; undefined: nothing is known. Throws: DataError when values other than 0
  /// and 1 were given, as class numbers or probabilities are.
  at::Tensor counted() const;
  const std::string& name() const { return name_; }
  /// Whether there is but one class to tell of.
  bool is_single() const { return channels_ == 1; }
  /// "name_class_1" of the k-th class that counts, by its channel.
  std::string class_name(const std::string& name, int64_t k) const;

 private:
  int64_t first() const { return channels_ > 1 && !with_background_ ? 1 : 0; }

  std::string name_;
  bool with_background_;
  int64_t channels_ = 0;
  at::Tensor sums_, others_;  // others: how many values were neither 0 nor 1
};

/// A number for every class of every image. compute() gives "name", the mean over images of each
/// one's mean over the classes that count in it, and of several classes "name_class_1" and so on,
/// the means over the images in which they count. Source: monai.metrics.utils.do_metric_reduction,
/// "mean" and "mean_batch".
class ClassMeans : public MaskMetric {
 public:
  using MaskMetric::MaskMetric;
  std::map<std::string, double> compute() const final;

 protected:
  /// (N,K) double, and whether each counts.
  struct Values {
    at::Tensor values, counts;
  };
  virtual Values measure(const Compared& batch) const = 0;

 private:
  /// The shape of what is added up: for the mean and each class, the sum and the number of images.
  std::vector<int64_t> shape(int64_t classes) const final { return {classes + 1, 2}; }
  at::Tensor count(const Compared& batch) const final;
};

/// Voxels of each mask (N,K,[D,]H,W) -> (N,K) double.
at::Tensor voxels_of(const at::Tensor& masks);

}  // namespace cytra::metrics
