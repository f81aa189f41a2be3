#pragma once
// A trained model that predicts images: what `predict` works by, and what programs embed.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "config/node.h"
#include "inference/averages.h"
#include "inference/decoder.h"
#include "inference/engine.h"
#include "inference/input.h"
#include "inference/postprocess.h"
#include "inference/slabs.h"
#include "inference/trained_model.h"
#include "inference/window_plan.h"
#include "io/writer.h"

namespace cytra::inference {

/// `inference_args` of predict: changes to the checkpoint's windows.
struct WindowChanges : SlidingWindowOptions {
  config::Node given_roi;
  template <class V>
  void visit(V& v) {
    v("roi_size",
      given_roi,
      "AUTO: twice the training patch where memory allows, no larger than the image; else voxels "
      "of the window, per spatial dimension, one number for all; <= 0: the image's size");
    visit_others(v);
  }
  static bool is_auto(const config::Node& roi);
  void check();
};

struct PredictorOptions {
  std::string accelerator = "auto";  // or cpu, gpu, cuda
  config::Node inference_args;  // WindowChanges; null, and what is null in it: the checkpoint's
  EngineOptions engine;
  TtaOptions tta;              // test-time augmentation
  std::string form;            // of the result, one of Decoder::forms(); "": the usual one
  double threshold = 0.5;      // of a mask's probability
  bool with_target = false;    // the transforms work on the target, too
  bool tracks_places = false;  // InputTransforms::track_places()
};

/// Copies share the model. Thread: predict() and run() may be called by several threads at once.
class Predictor {
 public:
  /// A checkpoint of `train`, or another model that checkpoint.ckpt_path takes (docs/inference.md).
  /// Throws: ConfigError, DataError.
  static Predictor load(const std::string& checkpoint, const PredictorOptions& options = {});
  /// The mean of several models' outputs, for more than one.
  Predictor(std::vector<LoadedModel> models, const PredictorOptions& options);

  /// Shape: (C,[D,]H,W) or (N,C,[D,]H,W), intensities as the transforms leave them -> (K,[D,]H,W)
  /// or (N,K,[D,]H,W), decoded: uint8 or uint16 class numbers (K = 1) or masks, int32 objects
  /// (K = 1), or float32.
  /// Throws: DataError (channels, dimensions, values that are not finite), MemoryError.
  Tensor predict(const Tensor& image) const;
  /// The whole road: the checkpoint's transforms, windows, result; by rows where the image is
  /// large. `output` has what describe() says. Throws: as above, and IoError.
  void predict(const io::ImageReader& image, io::ImageWriter& output) const;
  /// The result for an image, for io::create_image().
  io::ImageInfo describe(const io::ImageInfo& image) const;

  // The road in steps.
  const LoadedModel& model() const;
  const Decoder& decoder() const;
  const ops::Finish& finish() const;
  /// What makes the form of all rows of an image, once they are there; often nothing.
  const PostprocessSteps& steps() const;
  const std::string& form() const;
  c10::Device device() const;
  std::string x_key() const;
  std::string y_key() const;
  const InputTransforms& transforms() const;
  /// Throws: DataError for an image that the model does not take.
  void check(const ModelInput& input) const;
  /// Windows for an image of that name and size ([D,]H,W). Throws: MemoryError.
  SlidingWindowOptions windows(const std::string& id, const std::vector<int64_t>& size) const;
  /// What predicting an image of `size` ([D,]H,W) takes. `text`: "4096x4096 voxels: 81 windows of
  /// 512x512, 1.2 GB".
  struct Plan {
    int64_t windows = 0;
    double bytes = 0;  // at the peak
    std::string text;
  };
  Plan plan(const std::vector<int64_t>& size,
            const SlidingWindowOptions& windows,
            bool is_by_rows) const;
  /// The model on windows (S,C,[D,]H,W): by the engine, in smaller parts where memory runs out.
  std::vector<Tensor> forward(const Tensor& windows) const;
  /// Predicts the rows of an image, in order. Throws: DataError for values that are not finite.
  void run(const ModelInput& input,
           const SlidingWindowOptions& windows,
           const RowSink& sink,
           const WindowProgress& progress = {},
           RowRange range = {}) const;
  /// Images of one size, in memory, that share batches of windows: each is given to `sink`, whole,
  /// (C,[D,]H,W), undefined where the model made values that are not finite.
  void run(const std::vector<const ModelInput*>& inputs,
           const SlidingWindowOptions& windows,
           const std::function<void(std::size_t image, const Tensor& values)>& sink,
           const WindowProgress& progress = {}) const;
  /// "OpenVINO 2026.4, float32"; "" before the first windows.
  std::string engine() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// Images that take more bytes to load (loading_bytes) are read by rows.
int64_t by_rows_from();

}  // namespace cytra::inference
