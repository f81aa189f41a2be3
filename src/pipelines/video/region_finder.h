#pragma once
// The regions of a frame in which a detector has found something.
#include <cstdint>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "io/video_stream.h"
#include "pipelines/detection/detector.h"
#include "pipelines/job/stage_report.h"
#include "pipelines/video/frame_kernels.h"
#include "pipelines/video/video.h"

namespace cytra::inference {
class WindowedModel;
}

namespace cytra::pipelines {

/// The place in the stored frame of a box of the upright picture.
FrameBox to_stored(const FrameBox& upright, const io::VideoInfo& info);
/// Values of the stored frame, (..., H, W), upright; and back.
at::Tensor to_upright(const at::Tensor& stored, int turns);
at::Tensor to_stored(const at::Tensor& upright, int turns);

/// Pixels of a box, (channels,h,w) uint8: 1 (brightness) or 3.
at::Tensor pixels_of(const std::vector<unsigned char>& rgb,
                     int64_t frame_width,
                     const FrameBox& box,
                     int64_t channels);

/// A box with so many pixels around it, in `frame`, which begins at 0: from and to multiples of 32
/// pixels, so that there are few sizes, and no smaller than `least` (width, height) where the frame
/// isn't.
FrameBox region_around(const FrameBox& box,
                       int64_t margin,
                       const FrameBox& frame,
                       const FrameBox& least);

/// The boxes with those that overlap joined to the box around both, until none do.
std::vector<FrameBox> joined(const std::vector<FrameBox>& boxes);

class RegionFinder {
 public:
  /// Loads the detector options.roi, whose work is a stage of `report`. Regions are no smaller than
  /// the windows of `model`. Throws: as load_detector(); ConfigError for a detector of images of
  /// other channels than 1 and 3.
  RegionFinder(const VideoOptions& options,
               const io::VideoInfo& info,
               const inference::WindowedModel& model,
               StageReport& report);
  /// Counts frames: options.roi_every of them have the same regions.
  void next_frame() { ++age_; }
  /// The regions of this frame, or of one before, as it is stored. Throws: as Detector::detect().
  const std::vector<FrameBox>& regions(const std::vector<unsigned char>& rgb);
  /// What regions() would give, with nothing remembered: measuring changes no later frame.
  std::vector<FrameBox> regions_to_measure(const std::vector<unsigned char>& rgb) const {
    return age_ < every_ ? regions_ : found_in(rgb);
  }

 private:
  std::vector<FrameBox> found_in(const std::vector<unsigned char>& rgb) const;
  const io::VideoInfo info_;
  const int64_t margin_, every_;
  std::unique_ptr<Detector> detector_;
  StageReport::Stage& detecting_;
  FrameBox least_;
  std::vector<FrameBox> regions_;
  int64_t age_ = INT64_MAX / 2;  // frames since the detector has seen one
};

}  // namespace cytra::pipelines
