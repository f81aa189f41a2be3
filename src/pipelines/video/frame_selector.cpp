#include "pipelines/video/frame_selector.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include <ATen/ATen.h>

#include "base/error.h"
#include "base/strings.h"
#include "data/sample/image_tensor.h"
#include "io/reader.h"

namespace cytra::pipelines {
namespace {

constexpr float kMoved =
    0.04F;  // of a thumbnail's pixel: above a camera's noise, which 64 pixels average
constexpr double kWholeFrom = 0.6;  // share of the region from which on all of it is predicted

double mean_difference(const Thumbnail& a, const Thumbnail& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.luma.size(); ++i)
    sum += std::abs(static_cast<double>(a.luma[i]) - static_cast<double>(b.luma[i]));
  return sum / static_cast<double>(a.luma.size());
}

/// "x,y,width,height".
std::optional<FrameBox> box_of(const std::string& text) {
  const std::vector<std::string> words = split(text, ',');
  if (words.size() != 4) return std::nullopt;
  int64_t numbers[4] = {};
  for (std::size_t i = 0; i < 4; ++i) {
    const std::string word = trim(words[i]);
    if (word.empty() || word.size() > 9 ||
        word.find_first_not_of("0123456789") != std::string::npos)
      return std::nullopt;
    numbers[i] = std::stoll(word);
  }
  return FrameBox{numbers[0], numbers[1], numbers[2], numbers[3]};
}

bool is_detector(const std::string& roi) {
  return !box_of(roi) && !io::is_image_path(roi) && std::filesystem::is_regular_file(roi);
}

}  // namespace

FrameSelector::FrameSelector(const VideoOptions& options,
                             const io::VideoInfo& info,
                             const inference::WindowedModel& model,
                             StageReport& report)
    : options_(options), width_(info.width), whole_{0, 0, info.width, info.height} {
  if (!options.roi) return;
  follows_motion_ = *options.roi == "motion";
  if (is_detector(*options.roi)) {
    finder_.emplace(options, info, model, report);
  } else if (!follows_motion_) {
    choose_region(*options.roi, info);
  }
}

void FrameSelector::choose_region(const std::string& roi, const io::VideoInfo& info) {
  const bool is_turned = info.turns % 2 == 1;
  const int64_t width = is_turned ? info.height : info.width,
                height = is_turned ? info.width : info.height;
  if (const std::optional<FrameBox> box = box_of(roi)) {
    if (box->width < 1 || box->height < 1 || box->x + box->width > width ||
        box->y + box->height > height) {
      throw ConfigError("video.roi={}: not within the picture of {}x{} pixels", roi, width, height);
    }
    whole_ = to_stored(*box, info);
    return;
  }
  if (!io::is_image_path(roi)) {
    throw ConfigError(
        "video.roi={}: expected x,y,width,height (whole numbers), motion, an image, or the file of "
        "a detector",
        roi);
  }
  const at::Tensor pixels = data::to_tensor(io::read_image(roi), 2, roi).ne(0).any(0);
  if (pixels.size(0) != height || pixels.size(1) != width) {
    throw ConfigError("video.roi={}: {}x{} pixels, the upright picture has {}x{}",
                      roi,
                      pixels.size(1),
                      pixels.size(0),
                      width,
                      height);
  }
  mask_ = to_stored(pixels, info.turns).contiguous();
  const at::Tensor rows = mask_.any(1).nonzero(), columns = mask_.any(0).nonzero();
  if (rows.size(0) == 0) throw ConfigError("video.roi={}: all of it is 0", roi);
  const auto first = [](const at::Tensor& places) { return places[0].item<int64_t>(); };
  const auto count = [](const at::Tensor& places) {
    return places[-1].item<int64_t>() - places[0].item<int64_t>() + 1;
  };
  whole_ = {first(columns), first(rows), count(columns), count(rows)};
}

/// The box around all that changed, with a margin; empty: nothing.
FrameBox FrameSelector::moved(const Thumbnail& now) const {
  int64_t x0 = now.width, y0 = now.height, x1 = -1, y1 = -1;
  for (int64_t y = 0; y < now.height; ++y) {
    for (int64_t x = 0; x < now.width; ++x) {
      const auto i = static_cast<std::size_t>(y * now.width + x);
      if (std::abs(now.luma[i] - reference_->luma[i]) < kMoved) continue;
      x0 = std::min(x0, x);
      x1 = std::max(x1, x);
      y0 = std::min(y0, y);
      y1 = std::max(y1, y);
    }
  }
  if (x1 < 0) return {};
  constexpr int64_t step = kThumbnailStep;
  return region_around({step * x0, step * y0, step * (x1 + 1 - x0), step * (y1 + 1 - y0)},
                       options_.roi_margin,
                       whole_,
                       {});
}

/// What is predicted now is what later frames are compared with.
void FrameSelector::remember(const Thumbnail& now, const FrameBox& box) {
  const auto begin = [](int64_t at) { return (at + kThumbnailStep - 1) / kThumbnailStep; };
  const auto end = [](int64_t at, int64_t limit) {
    return std::min((at + kThumbnailStep - 1) / kThumbnailStep, limit);
  };
  for (int64_t y = begin(box.y); y < end(box.y + box.height, now.height); ++y) {
    for (int64_t x = begin(box.x); x < end(box.x + box.width, now.width); ++x) {
      const auto i = static_cast<std::size_t>(y * now.width + x);
      reference_->luma[i] = now.luma[i];
    }
  }
}

FrameSelector::Choice FrameSelector::choose(const std::vector<unsigned char>& rgb) {
  Choice choice = choose_by_change(rgb);
  if (!finder_) return choice;
  finder_->next_frame();
  if (choice.is_inferred) choice.boxes = finder_->regions(rgb);
  if (choice.is_measured) choice.boxes = finder_->regions_to_measure(rgb);
  return choice;
}

FrameSelector::Choice FrameSelector::choose_by_change(const std::vector<unsigned char>& rgb) {
  Choice choice;
  choice.boxes = {whole_};
  if (options_.skip_threshold <= 0 && !follows_motion_) return choice;
  Thumbnail now = thumbnail_of(rgb.data(), width_, whole_);
  const bool is_due = !reference_ || since_whole_ >= options_.max_gap;
  FrameBox box;
  if (!is_due) {
    const bool is_alike =
        options_.skip_threshold > 0 && mean_difference(now, *reference_) < options_.skip_threshold;
    if (follows_motion_ && !is_alike) box = moved(now);
    if (is_alike || (follows_motion_ && box.width == 0)) {
      ++since_whole_;
      ++reused_;
      choice.is_inferred = false;
      choice.is_measured = options_.measure_drift > 0 && reused_ % options_.measure_drift == 0;
      return choice;
    }
  }
  const bool is_part =
      box.width > 0 && static_cast<double>(box.width * box.height) <
                           kWholeFrom * static_cast<double>(whole_.width * whole_.height);
  if (is_part) {
    ++since_whole_;
    remember(now, box);
    choice.boxes = {box};
    return choice;
  }
  reference_ = std::move(now);
  since_whole_ = 0;
  return choice;
}

}  // namespace cytra::pipelines
