#pragma once
// The parts of a frame that are predicted, and the frames that keep the previous mask.
#include <optional>
#include <string>

#include <ATen/core/Tensor.h>

#include "io/video_stream.h"
#include "pipelines/video/frame_kernels.h"
#include "pipelines/video/region_finder.h"
#include "pipelines/video/video.h"

namespace cytra::pipelines {

class FrameSelector {
 public:
  /// Throws: ConfigError for a region that is no part of the frame; as io::read_image(), and
  /// load_detector().
  FrameSelector(const VideoOptions& options,
                const io::VideoInfo& info,
                const inference::WindowedModel& model,
                StageReport& report);

  struct Choice {
    bool is_inferred = true;      // else the mask before is taken over
    bool is_measured = false;     // taken over, and predicted to see how far it is off
    std::vector<FrameBox> boxes;  // what is predicted; none: all is background
  };
  /// What to do with the next frame, in order.
  Choice choose(const std::vector<unsigned char>& rgb);
  /// Whether a detector finds what is predicted; then all else is background.
  bool finds_regions() const { return finder_.has_value(); }
  /// The mask that results are limited to, (H,W) of the stored frame, bool; undefined: no limit.
  const at::Tensor& mask() const { return mask_; }
  const FrameBox& whole() const { return whole_; }

 private:
  void choose_region(const std::string& roi, const io::VideoInfo& info);
  Choice choose_by_change(const std::vector<unsigned char>& rgb);
  FrameBox moved(const Thumbnail& now) const;
  void remember(const Thumbnail& now, const FrameBox& box);
  const VideoOptions options_;
  const int64_t width_;
  FrameBox whole_;  // what may be predicted
  bool follows_motion_ = false;
  at::Tensor mask_;
  std::optional<RegionFinder> finder_;
  std::optional<Thumbnail> reference_;  // of what was predicted
  int64_t since_whole_ = 0;             // frames since whole_ was predicted
  int64_t reused_ = 0;
};

}  // namespace cytra::pipelines
