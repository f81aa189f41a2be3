#pragma once
// The steps of predicting an image by a Predictor, for code that predicts many images.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "inference/decoders/decoder.h"
#include "inference/models/trained_model.h"
#include "inference/postprocess/postprocess.h"
#include "inference/predictor/input.h"
#include "inference/predictor/predictor_options.h"
#include "inference/windows/slabs.h"
#include "inference/windows/window_plan.h"
#include "inference/windows/window_run.h"
#include "ops/windows/sums.h"

namespace cytra::inference {

class EnsembleMember;
struct ToFileGrid;  // inference/predictor/original_grid.h

/// Thread: const use by several at once.
class WindowedModel {
 public:
  WindowedModel(const std::vector<LoadedModel>& models, const PredictorOptions& options);
  /// Takes the models and engines of another one, for results of another form or threshold.
  /// Throws: ConfigError for a form that the decoder does not have, or for which the models have
  /// to be run otherwise.
  WindowedModel(const WindowedModel& other, const std::string& form, double threshold);
  WindowedModel& operator=(WindowedModel&&) = delete;

  /// Checks an image. Throws: DataError where the model can't take it.
  void check(const ModelInput& input) const;
  /// Chooses windows for an image of this name and size ([D,]H,W), on the device. Throws:
  /// MemoryError.
  /// `folder`, `held_bytes`: as of WindowPlanner::plan().
  SlidingWindowOptions windows(const std::string& id,
                               const std::vector<int64_t>& size,
                               const std::string& folder = "",
                               int64_t held_bytes = 0) const;
  /// `work_bytes`: of what comes after the windows.
  SlidingWindowOptions windows(const ModelInput& input, int64_t work_bytes = 0) const;
  /// The windows and memory for predicting an image of `size` ([D,]H,W). `text`: "4096x4096
  /// voxels: 81 windows of 512x512, 4 at once, 1.2 GB".
  struct Plan {
    int64_t windows = 0;
    double bytes = 0;  // at the peak
    std::string text;
  };
  Plan plan(const std::vector<int64_t>& size,
            const SlidingWindowOptions& windows,
            bool is_by_rows) const;
  /// Runs the model, or a part of it, on windows (S,C,[D,]H,W) by the engine, in smaller batches
  /// where memory runs out: what `finish` takes.
  std::vector<Tensor> forward(const Tensor& windows, std::size_t part = 0) const;
  /// Predicts the rows of an image, in order. Throws: DataError for values that are not finite.
  void run(const ModelInput& input,
           const SlidingWindowOptions& windows,
           const RowSink& sink,
           const WindowProgress& progress = {},
           RowRange range = {}) const;
  /// Predicts all rows of an image and returns them on the CPU.
  Tensor run(const ModelInput& input, const SlidingWindowOptions& windows) const;
  /// Predicts images of one size, in memory, that share batches of windows: `sink` gets each whole
  /// image, (C,[D,]H,W), undefined where the model made values that are not finite.
  void run(const std::vector<const ModelInput*>& inputs,
           const SlidingWindowOptions& windows,
           const std::function<void(std::size_t image, const Tensor& values)>& sink,
           const WindowProgress& progress = {}) const;
  /// What is made of the image's sums: `finish`, or, where its scores are to be brought to the
  /// voxels of the file before that, logits.
  ops::Finish finish_of(const ModelInput& input) const;
  /// How results of an image come to the voxels of the file.
  ToFileGrid to_file(const ModelInput& input) const;
  /// The engine's name, as Predictor::engine().
  std::string engine() const;
  /// The dimensions of images of so many planes: 3 for stacks, which a 2D model takes plane by
  /// plane.
  int64_t image_dims(int64_t planes = 1) const;
  /// The axis of an image, of `dims` spatial dimensions, along which the model takes planes, 0 to
  /// 2; none: it takes the image as it is.
  std::optional<int64_t> plane_axis(std::size_t dims) const;

  c10::Device device;
  LoadedModel model;  // it returns the mean of all models
  std::shared_ptr<const Decoder> decoder;
  std::string form;  // of results
  ops::Finish finish;
  PostprocessSteps steps;  // make the form from all rows of an image; often empty
  std::string x_key, y_key;
  InputTransforms transforms;

 private:
  /// A model of all classes, or of some, of which 0 is none of them.
  struct Part {
    Forward forward;  // by the engines, with test-time augmentation
    SlidingWindowOptions windows;
    int64_t classes;
  };
  SlidingWindowOptions windows_of(const Part& part,
                                  const std::string& id,
                                  const std::vector<int64_t>& size,
                                  const std::string& folder,
                                  int64_t held_bytes = 0) const;
  std::vector<double> background_of(const Part& part) const;
  const Tensor& prepared_for(std::size_t part, const ModelInput& input) const;
  void run_part(std::size_t part,
                const ModelInput& input,
                const SlidingWindowOptions& windows,
                const RowSink& sink,
                const WindowProgress& progress,
                RowRange range) const;

  /// Whether windows give LoadedModel::features, and `finish` has the last layer.
  bool sums_features_;
  std::vector<std::shared_ptr<EnsembleMember>> members_;
  std::vector<Part> parts_;
  WindowPlanner planner_;
  std::optional<int64_t> budget_;  // bytes for an image
  std::optional<ForegroundRule> foreground_;
  mutable AdaptiveBatch adaptive_;
};

/// The number of bytes: images that take more to load (loading_bytes) are read by rows.
int64_t by_rows_from();

}  // namespace cytra::inference
