#pragma once
// Averages several predictions: those of several models, or of one model for turned images.
#include <string>
#include <vector>

#include "inference/trained_model.h"

namespace cytra::inference {

/// Test-time augmentation: windows are predicted unchanged, mirrored, turned and resized; the
/// results are turned back and averaged.
struct TtaOptions {
  std::vector<int64_t> mirror_axes;
  bool rotate90 = false;
  std::vector<double> scales{1};
  std::string average = "logits";
  template <class V>
  void visit(V& v) {
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
  }
  void check() const;
};

/// The mean of the members' outputs for the same windows, output by output, in float32, summed in
/// the members' order. Throws: DataError where their outputs' shapes differ.
Forward mean_of(std::vector<Forward> members);
/// A model that returns the mean of all: sides of windows are multiples of all divisors, the rest
/// is taken from the first model.
LoadedModel mean_of(std::vector<LoadedModel> models);

/// The mean of the members with test-time augmentation; for a symmetric image it is exactly
/// symmetric. Sides of resized windows are multiples of `divisor` (one per spatial dimension). The
/// mean is taken of probabilities, a softmax over channels that are `exclusive`, else logistic
/// functions, and returned as their logits. Throws: ConfigError for axes that windows do not have.
Forward averaged(std::vector<Forward> members,
                 const TtaOptions& options,
                 const std::vector<int64_t>& divisor,
                 bool exclusive);

}  // namespace cytra::inference
