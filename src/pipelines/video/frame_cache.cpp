#include "pipelines/video/frame_cache.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "base/version.h"
#include "inference/predictor/predictor.h"
#include "inference/predictor/windowed_model.h"
#include "io/fingerprint.h"
#include "io/video_stream.h"
#include "ops/windows/sums.h"

namespace cytra::pipelines {

FrameCache::FrameCache(const VideoOptions& options,
                       const io::VideoInfo& info,
                       const inference::Predictor& predictor) {
  if (!options.cache_dir) return;
  // Packed labels are small, and the system's disk cache keeps them: none is kept in memory.
  kept_ = std::make_unique<data::CacheManager>(
      data::CacheLimits{0, *options.cache_dir, options.cache_dir_gb, true});
  const inference::LoadedModel& model = predictor.model();
  settings_ = io::fingerprint(fmt::format("{} {} {} {} {} {} {} {} {} {}",
                                          version(),
                                          model.fingerprint,
                                          config::to_json(model.config),
                                          predictor.windowed().form,
                                          static_cast<int>(predictor.windowed().finish.kind),
                                          predictor.windowed().finish.threshold,
                                          predictor.windowed().device.str(),
                                          info.width,
                                          info.height,
                                          info.turns));
  settings_ += options.settings;
}

std::string FrameCache::key(const std::vector<unsigned char>& rgb, const FrameBox& box) const {
  return fmt::format("frame {} {} {},{},{},{}",
                     settings_,
                     io::fingerprint(rgb.data(), rgb.size()),
                     box.x,
                     box.y,
                     box.width,
                     box.height);
}

at::Tensor FrameCache::find(const std::string& key) {
  const auto entry = kept_->get(key);
  return entry ? entry->tensors.at("labels").to(at::kInt) : at::Tensor();
}

void FrameCache::keep(const std::string& key, const at::Tensor& labels) {
  const bool is_small = labels.numel() == 0 || labels.max().item<int32_t>() <= 255;
  kept_->put(key, {{{"labels", labels.to(is_small ? at::kByte : at::kInt).contiguous()}}, {}});
}

}  // namespace cytra::pipelines
