// Part of pipelines/video/run.h: from the model's values to the frame that is written.
#include <algorithm>

#include <ATen/ATen.h>

#include "pipelines/video/run.h"

namespace cytra::pipelines {
namespace {

/// Keeps the labels of a frame.
class LabelsOfFrame final : public inference::ResultOutput {
 public:
  explicit LabelsOfFrame(at::Tensor& labels) : labels_(labels) {}
  void take(const inference::ImageResult& result, const at::Tensor& rows) override {
    if (!result.has_labels())
      throw std::logic_error("video frames are predicted in the form that predict calls mask");
    rows_.push_back(result.labels(rows).to(at::kInt));
  }
  void finish(inference::ResultFiles& /*files*/) override { labels_ = at::cat(rows_, 1); }

 private:
  at::Tensor& labels_;
  std::vector<at::Tensor> rows_;
};

}  // namespace

/// (h,w) int32 of a region, as stored: from the cache, or of its values.
at::Tensor VideoRun::labels_of(const Region& region) {
  if (region.labels.defined()) return region.labels;
  at::Tensor labels;
  inference::ImageResult::Outputs outputs;
  outputs.push_back(std::make_unique<LabelsOfFrame>(labels));
  inference::ImageResult result(predictor_, result_, region.input, std::move(outputs));
  result.take(region.values);
  result.finish();
  if (labels.size(0) > 1) {  // masks that may overlap: the last one is seen
    const at::Tensor numbers =
        at::arange(1, labels.size(0) + 1, at::TensorOptions(at::kInt)).view({-1, 1, 1});
    labels = (labels.ne(0) * numbers).amax(0, true);
  }
  labels = to_stored(labels[0], source_.info().turns);
  if (cache_.is_on()) cache_.keep(region.key, labels);
  return labels;
}

void VideoRun::Drift::add(const at::Tensor& shown, const at::Tensor& exact) {
  const at::Tensor is_any = shown.ne(0).logical_or(exact.ne(0));
  const auto whole = is_any.sum().item<int64_t>();
  const auto common = shown.eq(exact).logical_and(is_any).sum().item<int64_t>();
  const double drift =
      whole == 0 ? 0 : 1 - static_cast<double>(common) / static_cast<double>(whole);
  ++frames;
  sum += drift;
  most = std::max(most, drift);
}

/// Pastes the results of a job into the labels of the frame.
void VideoRun::paste(const Job& job) {
  const at::Tensor shown = job.choice.is_measured ? labels_.clone() : labels_;
  if (selector_.finds_regions()) shown.zero_();
  for (const Region& region : job.regions) {
    const FrameBox& box = region.box;
    const auto part = [&](const at::Tensor& whole) {
      return whole.narrow(0, box.y, box.height).narrow(1, box.x, box.width);
    };
    at::Tensor labels = labels_of(region);
    if (highest_ == 0) {  // the numbers of objects go on from those outside of the box
      part(shown).zero_();
      labels = at::where(labels.ne(0), labels + shown.max(), labels);
    }
    if (selector_.mask().defined()) labels = labels * part(selector_.mask());
    part(shown).copy_(labels);
  }
  if (job.choice.is_measured) drift_.add(labels_, shown);
}

void VideoRun::count(const Job& job) {
  gap_ = job.choice.is_inferred ? 0 : gap_ + 1;
  figures_.longest_gap = std::max(figures_.longest_gap, gap_);
  if (!job.choice.is_inferred) {
    ++figures_.reused;
    return;
  }
  const bool is_cached =
      std::ranges::all_of(job.regions, [](const Region& one) { return one.labels.defined(); });
  ++(job.regions.empty() ? figures_.empty : is_cached ? figures_.cached : figures_.inferred);
  if (!selector_.finds_regions()) {
    if (!(job.regions[0].box == selector_.whole())) ++figures_.partial;
    return;
  }
  figures_.regions += std::ssize(job.regions);
  for (const Region& region : job.regions) {
    figures_.regions_share += static_cast<double>(region.box.width * region.box.height) /
                              static_cast<double>(labels_.numel());
  }
}

void VideoRun::postprocess_all() {
  while (std::optional<JobPointer> next = predicted_.pop()) {
    JobPointer job = std::move(*next);
    if (!job->is_end()) {
      const StageWork work(postprocessing_);
      if (job->choice.is_inferred || job->choice.is_measured) paste(*job);
      count(*job);
      const int32_t* labels = labels_.const_data_ptr<int32_t>();
      if (options_.output_kind == "mask") {
        paint_labels(labels, labels_.numel(), highest_, job->frame.rgb.data());
      } else {
        draw_labels(labels, labels_.size(0), labels_.size(1), job->frame.rgb.data());
      }
      job->regions.clear();
    }
    const int64_t bytes = job->bytes();
    if (!drawn_.push(std::move(job), bytes)) break;
  }
  drawn_.close();
}

}  // namespace cytra::pipelines
