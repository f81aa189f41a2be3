#pragma once
// Averages several predictions: those of several models, or of one model for turned images.
#include <string>
#include <vector>

#include "inference/models/trained_model.h"

namespace cytra::inference {

/// Test-time augmentation: windows are predicted unchanged, mirrored, turned and resized; the
/// results are turned back and averaged.
struct TtaOptions {
  std::vector<int64_t> mirror_axes;
  bool rotate90 = false;
  std::vector<double> scales{1};
  std::string average = "logits";
  int64_t dropout_samples = 0;
  void visit(auto& v) {
    v("mirror_axes",
      mirror_axes,
      "spatial axes that windows are mirrored along, 0 the first, -1 the last, in all combinations "
      "(nnU-Net's mirroring: [0, 1] in 2D, [0, 1, 2] in 3D)",
      -3,
      2);
    v("rotate90", rotate90, "also turn windows by quarter turns in the plane of the last two axes");
    v("scales", scales, "windows are resized by these factors; 1: as they are", 0.1, 10);
    v("average",
      average,
      "what is averaged, here and over several checkpoints: logits, as nnU-Net does, or "
      "probabilities",
      {"logits", "probabilities"});
    v("dropout_samples",
      dropout_samples,
      "the mean over so many passes in which the network's dropout drops values, too (Monte Carlo "
      "dropout); 0: one pass without",
      0,
      10000);
  }
  void check() const;
  /// Whether windows are predicted as they are, and nothing else.
  bool is_plain() const;
};

/// The mean of the members' outputs for the same windows, output by output, in float32, summed in
/// the members' order. Throws: DataError where their outputs' shapes differ.
Forward mean_of(std::vector<Forward> members);
/// A model that returns the mean of all, or of the first part's: sides of windows are multiples of
/// all divisors, the rest is taken from the first model.
LoadedModel mean_of(std::vector<LoadedModel> models);

/// The mean of the members with test-time augmentation; for a symmetric image it is exactly
/// symmetric. Sides of resized windows are multiples of `divisor` (one per spatial dimension).
/// The mean of probabilities, a softmax over channels that are `exclusive`, else logistic
/// functions, is returned as their logits; with `variance` it is their population variance over
/// all that is averaged. Throws: ConfigError for axes that windows do not have, and where the
/// variance is asked of a single prediction.
Forward averaged(std::vector<Forward> members,
                 const TtaOptions& options,
                 const std::vector<int64_t>& divisor,
                 bool exclusive,
                 bool variance = false);

}  // namespace cytra::inference
