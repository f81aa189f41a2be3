#pragma once
// Which part of a frame is predicted, and which frames take over the mask before them.
#include <optional>
#include <string>

#include <ATen/core/Tensor.h>

#include "io/video_stream.h"
#include "pipelines/video/frame_kernels.h"
#include "pipelines/video/video.h"

namespace cytra::pipelines {

/// The frame as it is stored, where a box of the upright picture lies.
FrameBox to_stored(const FrameBox& upright, const io::VideoInfo& info);
/// Values of the stored frame, (..., H, W), upright; and back.
at::Tensor to_upright(const at::Tensor& stored, int turns);
at::Tensor to_stored(const at::Tensor& upright, int turns);

class FrameSelector {
 public:
  /// Throws: ConfigError for a region that is no part of the frame; as io::read_image().
  FrameSelector(const VideoOptions& options, const io::VideoInfo& info);

  struct Choice {
    bool is_inferred = true;   // else the mask before is taken over
    bool is_measured = false;  // taken over, and predicted to see how far it is off
    FrameBox box;              // what is predicted
  };
  /// Of the next frame, in order.
  Choice choose(const std::vector<unsigned char>& rgb);
  /// What results are limited to, (H,W) of the stored frame, bool; undefined: nothing.
  const at::Tensor& mask() const { return mask_; }
  const FrameBox& whole() const { return whole_; }

 private:
  void choose_region(const std::string& roi, const io::VideoInfo& info);
  FrameBox moved(const Thumbnail& now) const;
  void remember(const Thumbnail& now, const FrameBox& box);
  const VideoOptions options_;
  const int64_t width_;
  FrameBox whole_;  // what may be predicted
  bool follows_motion_ = false;
  at::Tensor mask_;
  std::optional<Thumbnail> reference_;  // of what was predicted
  int64_t since_whole_ = 0;             // frames since whole_ was predicted
  int64_t reused_ = 0;
};

}  // namespace cytra::pipelines
