#include "pipelines/video/region_finder.h"

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>

#include "base/error.h"
#include "inference/predictor/windowed_model.h"

namespace cytra::pipelines {
namespace {

constexpr int64_t kRegionStep = 32;  // pixels

/// A side of region_around().
void pad_side(int64_t& begin, int64_t& size, int64_t margin, int64_t limit, int64_t least) {
  const auto down = [](int64_t at) { return std::max<int64_t>(at, 0) / kRegionStep * kRegionStep; };
  const auto up = [&](int64_t at) { return std::min(down(at + kRegionStep - 1), limit); };
  int64_t end = up(begin + size + margin);
  begin = down(begin - margin);
  if (end - begin < least) {
    begin = down(std::min((begin + end - least) / 2, limit - least));
    end = std::max(end, up(begin + least));
  }
  size = end - begin;
}

bool overlap(const FrameBox& a, const FrameBox& b) {
  return a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
}

FrameBox around(const FrameBox& a, const FrameBox& b) {
  const int64_t x = std::min(a.x, b.x), y = std::min(a.y, b.y);
  return {x,
          y,
          std::max(a.x + a.width, b.x + b.width) - x,
          std::max(a.y + a.height, b.y + b.height) - y};
}

}  // namespace

FrameBox to_stored(const FrameBox& box, const io::VideoInfo& info) {
  switch (info.turns) {
    case 1:
      return {box.y, info.height - box.x - box.width, box.height, box.width};
    case 2:
      return {
          info.width - box.x - box.width, info.height - box.y - box.height, box.width, box.height};
    case 3:
      return {info.width - box.y - box.height, box.x, box.height, box.width};
    default:
      return box;
  }
}

at::Tensor to_upright(const at::Tensor& stored, int turns) {
  return turns == 0 ? stored : at::rot90(stored, -turns, {-2, -1});
}

at::Tensor to_stored(const at::Tensor& upright, int turns) {
  return turns == 0 ? upright : at::rot90(upright, turns, {-2, -1});
}

at::Tensor pixels_of(const std::vector<unsigned char>& rgb,
                     int64_t frame_width,
                     const FrameBox& box,
                     int64_t channels) {
  if (channels == 1) {
    at::Tensor luma = at::empty({1, box.height, box.width}, at::kByte);
    luma_of(rgb.data(), frame_width, box, luma.mutable_data_ptr<uint8_t>());
    return luma;
  }
  const int64_t height = std::ssize(rgb) / (3 * frame_width);
  return at::from_blob(const_cast<unsigned char*>(rgb.data()),  // is only read
                       {height, frame_width, 3},
                       at::kByte)
      .narrow(0, box.y, box.height)
      .narrow(1, box.x, box.width)
      .permute({2, 0, 1})
      .contiguous();
}

FrameBox region_around(const FrameBox& box,
                       int64_t margin,
                       const FrameBox& frame,
                       const FrameBox& least) {
  FrameBox region = box;
  pad_side(region.x, region.width, margin, frame.width, least.width);
  pad_side(region.y, region.height, margin, frame.height, least.height);
  return region;
}

std::vector<FrameBox> joined(const std::vector<FrameBox>& boxes) {
  std::vector<FrameBox> apart;
  for (FrameBox box : boxes) {
    for (;;) {
      const auto other =
          std::ranges::find_if(apart, [&](const FrameBox& one) { return overlap(box, one); });
      if (other == apart.end()) break;
      box = around(box, *other);
      apart.erase(other);
    }
    apart.push_back(box);
  }
  return apart;
}

RegionFinder::RegionFinder(const VideoOptions& options,
                           const io::VideoInfo& info,
                           const inference::WindowedModel& model,
                           StageReport& report)
    : info_(info),
      margin_(options.roi_margin),
      every_(options.roi_every),
      detecting_(report.add("  detect")) {
  DetectorOptions found;
  found.conf_threshold = options.conf_threshold;
  detector_ = load_detector(*options.roi, model.device, found);
  const int64_t channels = detector_->in_channels();
  if (channels != 0 && channels != 1 && channels != 3) {
    throw ConfigError(
        "video.roi={}: a detector of {} channels; frames have 3, or 1 (their brightness)",
        *options.roi,
        channels);
  }
  const std::vector<int64_t> window = model.windows("regions of frames", {1, 1}).roi_size;
  least_ = {0, 0, window.back(), window.front()};
}

const std::vector<FrameBox>& RegionFinder::regions(const std::vector<unsigned char>& rgb) {
  if (age_ >= every_) {
    age_ = 0;
    regions_ = found_in(rgb);
  }
  return regions_;
}

std::vector<FrameBox> RegionFinder::found_in(const std::vector<unsigned char>& rgb) const {
  const StageWork work(detecting_);
  const at::Tensor picture = to_upright(pixels_of(rgb,
                                                  info_.width,
                                                  {0, 0, info_.width, info_.height},
                                                  detector_->in_channels() == 1 ? 1 : 3),
                                        info_.turns)
                                 .contiguous();
  const ops::Boxes found = detector_->detect({picture}).front();
  const FrameBox whole{0, 0, picture.size(2), picture.size(1)};
  std::vector<FrameBox> regions;
  for (int64_t i = 0; i < found.count(); ++i) {
    const float* box = found.corners.const_data_ptr<float>() + 4 * i;
    const auto x = static_cast<int64_t>(std::floor(box[0]));
    const auto y = static_cast<int64_t>(std::floor(box[1]));
    const FrameBox pixels{x,
                          y,
                          static_cast<int64_t>(std::ceil(box[2])) - x,
                          static_cast<int64_t>(std::ceil(box[3])) - y};
    regions.push_back(region_around(pixels, margin_, whole, least_));
  }
  regions = joined(regions);
  for (FrameBox& region : regions) region = to_stored(region, info_);
  return regions;
}

}  // namespace cytra::pipelines
