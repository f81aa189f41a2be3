#pragma once
// A trained model that predicts images, for `predict` and for other programs.
#include <memory>
#include <string>
#include <vector>

#include "inference/models/trained_model.h"
#include "inference/predictor/predictor_options.h"
#include "io/writer.h"

namespace cytra::inference {

class WindowedModel;  // inference/predictor/windowed_model.h

/// A predictor; copies share the model. Thread: predict() may be called by several threads at
/// once.
class Predictor {
 public:
  /// Loads a checkpoint of `train`, or another model that checkpoint.ckpt_path accepts
  /// (docs/inference.md).
  /// Throws: ConfigError, DataError.
  static Predictor load(const std::string& checkpoint, const PredictorOptions& options = {});
  /// Takes models; of several models the mean of their outputs is used.
  Predictor(std::vector<LoadedModel> models, const PredictorOptions& options);
  /// Returns a predictor with the models and engines of this one, for results of another form or
  /// threshold. Throws: ConfigError.
  Predictor with(const std::string& form, double threshold) const;

  /// Shape: (C,[D,]H,W) or (N,C,[D,]H,W), intensities as after the transforms -> (K,[D,]H,W) or
  /// (N,K,[D,]H,W), decoded: uint8 or uint16 class numbers (K = 1) or masks, int32 objects
  /// (K = 1), or float32.
  /// Throws: DataError (channels, dimensions, values that are not finite), MemoryError.
  Tensor predict(const Tensor& image) const;
  /// Predicts an image with all steps: the checkpoint's transforms, windows, result; by rows where
  /// the image is large. `output` must be as describe() says. Throws: what the other predict()
  /// throws, and IoError.
  void predict(const io::ImageReader& image, io::ImageWriter& output) const;
  /// Describes the result for an image, for io::create_image().
  io::ImageInfo describe(const io::ImageInfo& image) const;

  /// The mean of all models.
  const LoadedModel& model() const;
  /// The engine's name: "OpenVINO 2026.4, float32"; "" before the first windows.
  std::string engine() const;
  const WindowedModel& windowed() const { return *windowed_; }

 private:
  explicit Predictor(std::shared_ptr<const WindowedModel> windowed);
  std::shared_ptr<const WindowedModel> windowed_;
};

}  // namespace cytra::inference
