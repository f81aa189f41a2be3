#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "ops/boxes/boxes.h"

namespace cytra::metrics {

/// A batch of whole images: what was predicted, and what is true.
struct Compared {
  /// Both (N,K,[D,]H,W), by Metric::input().
  at::Tensor prediction, truth;
  /// (N,1,[D,]H,W) bool: voxels that count; undefined: all.
  at::Tensor mask = {};
  /// Voxel sizes, (Z,)Y,X, of each image, as far as they are known; 0: it is not.
  std::vector<std::vector<double>> spacing_um = {};
  /// The boxes found in each image, with their scores, and the boxes of its objects: for
  /// Input::boxes, in place of prediction and truth. Any device.
  std::vector<ops::Boxes> found = {}, objects = {};
};

/// Throws: DataError naming the metric unless both are (N,`channels`,[D,]H,W); 0: any number.
void check_shapes(const std::string& name, const Compared& batch, int64_t channels = 0);

/// How good predictions are. Registered under its class name in MONAI or torchmetrics. The result
/// is exact for any batch size and number of processes, because sums over images are counted.
class Metric {
 public:
  static constexpr const char* kKind = "metric";
  /// masks: 0 and 1 in any type, a channel for each class (of classes that exclude each other
  /// channel 0 is the background). objects: K = 1, whole numbers, 0 for none. values: float32.
  /// boxes: Compared::found and objects, of K classes. probabilities: float32 of each class, whose
  /// sum is 1, or of each mask, and 0 or 1.
  enum class Input { masks, objects, values, boxes, probabilities };
  virtual ~Metric() = default;
  virtual Input input() const = 0;
  /// Begins afresh for this number of channels, with sums() of their final shape. A process that
  /// may get no images calls it before sums(); others learn the number from the first images.
  virtual void expect(int64_t /*channels*/) { reset(); }
  /// Throws: DataError for other shapes. Where it can, it waits for no GPU.
  virtual void update(const Compared& batch) = 0;
  /// The values by name: "dice", "dice_class_1", "ap50"; NaN where nothing was counted.
  virtual std::map<std::string, double> compute() const = 0;
  /// How many of each true class (rows) were taken for each class, (K,K) double, on the host;
  /// undefined: it tells none.
  virtual at::Tensor confusion() const { return {}; }
  /// The recall and the precision of all with a score or a higher one, from the highest score to
  /// the lowest, (P,2) double for each class; empty: it tells none.
  virtual std::vector<at::Tensor> precision_recall() const { return {}; }
  /// The sums, double, which several processes add up before compute(); the tensors are the
  /// metric's own.
  virtual std::vector<at::Tensor> sums() = 0;
  /// What no sums tell, as the order of all scores: before compute(), several processes put their
  /// lists together. `of_all` gives the rows (N,K), double, of all processes, by rank, for those of
  /// this one; all call it equally often. Only metrics of Input::boxes are asked.
  virtual void gather(const std::function<at::Tensor(const at::Tensor& rows)>& /*of_all*/) {}
  virtual void reset() = 0;
};

/// A metric by one tensor of sums, whose shape is known from the start.
class SumsMetric : public Metric {
 public:
  explicit SumsMetric(std::vector<int64_t> shape) : shape_(std::move(shape)) { clear(); }
  std::vector<at::Tensor> sums() final { return {sums_}; }
  void reset() final { clear(); }

 protected:
  /// Adds to the sums, on the device of `values`.
  void add(const at::Tensor& values);
  at::Tensor sums_;

 private:
  void clear();
  std::vector<int64_t> shape_;
};

}  // namespace cytra::metrics
