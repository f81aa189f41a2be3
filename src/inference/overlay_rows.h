#pragma once
#include <cstdint>
#include <vector>

#include "inference/input.h"
#include "inference/overlay.h"

namespace cytra::inference {

/// draw_overlay() of an image whose labels come by rows: of a stack, the plane with most foreground
/// is kept; of a plane larger than 2048 pixels a side, every second (third ...) pixel.
class OverlayRows {
 public:
  explicit OverlayRows(const ModelInput& input);
  /// The next rows of its labels, (K,count,...); of several channels (masks that overlap) the last
  /// one is seen.
  void take(const at::Tensor& labels);
  /// All rows were taken. Reads what it shows of the image.
  io::Image picture() const;

 private:
  const ModelInput& input_;
  int64_t step_, next_ = 0;         // of a plane: every so many pixels; the row that comes
  int64_t plane_ = 0, most_ = -1;   // of a stack, and its foreground
  std::vector<at::Tensor> labels_;  // (H,W) of the plane, or rows of it
};

}  // namespace cytra::inference
