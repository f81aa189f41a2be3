#pragma once
// Labels of frames that were predicted before, also by another run.
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "data/loader/cache.h"
#include "pipelines/video/frame_kernels.h"
#include "pipelines/video/video.h"

namespace cytra::inference {
class Predictor;
}
namespace cytra::io {
struct VideoInfo;
}

namespace cytra::pipelines {

class FrameCache {
 public:
  /// Throws: ConfigError for a folder that can't be made.
  FrameCache(const VideoOptions& options,
             const io::VideoInfo& info,
             const inference::Predictor& predictor);
  bool is_on() const { return kept_ != nullptr; }
  /// The key of a frame's pixels, of the box that is predicted in it, and of all else that its
  /// labels depend on.
  std::string key(const std::vector<unsigned char>& rgb, const FrameBox& box) const;
  /// (h,w) int32 of the box; undefined: not there.
  at::Tensor find(const std::string& key);
  void keep(const std::string& key, const at::Tensor& labels);

 private:
  std::unique_ptr<data::CacheManager> kept_;
  std::string settings_;
};

}  // namespace cytra::pipelines
