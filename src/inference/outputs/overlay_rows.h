#pragma once
#include <cstdint>
#include <vector>

#include "inference/outputs/draw_overlay.h"
#include "inference/predictor/input.h"

namespace cytra::inference {

/// Does draw_overlay() for an image whose labels come by rows: of a stack, the plane with most
/// foreground is kept; of a plane larger than 2048 pixels a side, every second (third ...) pixel.
class OverlayRows {
 public:
  explicit OverlayRows(const ModelInput& input);
  /// Takes the next rows of its labels, (K,count,...); of several channels (masks that overlap)
  /// the last one is visible.
  void take(const at::Tensor& labels);
  /// The picture, after all rows were taken. Reads the shown part of the image.
  io::Image picture() const;

 private:
  const ModelInput& input_;
  int64_t step_, next_ = 0;         // of a plane: the distance of kept pixels; the next row
  int64_t plane_ = 0, most_ = -1;   // of a stack, and its foreground
  std::vector<at::Tensor> labels_;  // (H,W) of the plane, or rows of it
};

}  // namespace cytra::inference
