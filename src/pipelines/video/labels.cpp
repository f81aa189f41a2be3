// The stage of VideoRun that makes labels of values, and pictures of labels.
#include <algorithm>

#include <ATen/ATen.h>

#include "base/error.h"
#include "inference/original_grid.h"
#include "pipelines/video/run.h"

namespace cytra::pipelines {

/// (h,w) int32 of the box of a job, as stored.
at::Tensor VideoRun::labels_of(const Job& job, const at::Tensor& values) const {
  const FrameBox& box = job.choice.box;
  const bool has_steps = !predictor_.steps().empty();
  inference::Result result{values, false, job.input->sample.geometry()};
  if (has_steps) {
    inference::apply_all(predictor_.steps(), result);
  } else if (!predictor_.decoder().is_labels(predictor_.form())) {
    throw std::logic_error("video frames are predicted in the form that predict calls mask");
  }
  result.is_labels = true;
  const io::Geometry plain = plain_geometry();
  const bool is_turned = source_.info().turns % 2 == 1;
  const std::vector<int64_t> size{is_turned ? box.width : box.height,
                                  is_turned ? box.height : box.width};
  if (result.geometry.affine != plain.affine || result.values.sizes().slice(1) != size)
    inference::to_grid(result, size, plain);
  at::Tensor labels = result.values.to(at::kInt);
  if (labels.size(0) > 1) {  // masks that may overlap: the last one is seen
    const at::Tensor numbers =
        at::arange(1, labels.size(0) + 1, at::TensorOptions(at::kInt)).view({-1, 1, 1});
    labels = (labels.ne(0) * numbers).amax(0, true);
  }
  return to_stored(labels[0], source_.info().turns);
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

/// The result of a job into the labels of the frame.
void VideoRun::paste(Job& job) {
  const FrameBox& box = job.choice.box;
  at::Tensor labels = job.labels;
  if (!labels.defined()) {
    labels = labels_of(job, job.values);
    if (cache_.is_on()) cache_.keep(job.key, labels);
    if (job.exact.defined()) exit_drift_.add(labels, labels_of(job, job.exact));
  }
  const auto part = [&](const at::Tensor& whole) {
    return whole.narrow(0, box.y, box.height).narrow(1, box.x, box.width);
  };
  if (attention_.mask().defined()) labels = labels * part(attention_.mask());
  if (job.choice.is_measured) return drift_.add(part(labels_), labels);
  part(labels_).copy_(labels);
}

void VideoRun::postprocess_all() {
  while (std::optional<JobPointer> next = predicted_.pop()) {
    JobPointer job = std::move(*next);
    if (!job->is_end()) {
      const StageWork work(postprocessing_);
      const bool is_cached = job->labels.defined();
      if (is_cached || job->values.defined()) paste(*job);
      const Attention::Choice& choice = job->choice;
      gap_ = choice.is_inferred ? 0 : gap_ + 1;
      ++(!choice.is_inferred ? figures_.reused : is_cached ? figures_.cached : figures_.inferred);
      if (choice.is_inferred && !(choice.box == attention_.whole())) ++figures_.partial;
      figures_.longest_gap = std::max(figures_.longest_gap, gap_);
      const int32_t* labels = labels_.const_data_ptr<int32_t>();
      if (options_.output_kind == "mask") {
        paint_labels(labels, labels_.numel(), highest_, job->frame.rgb.data());
      } else {
        draw_labels(labels, labels_.size(0), labels_.size(1), job->frame.rgb.data());
      }
      job->input.reset();
      for (at::Tensor* one : {&job->values, &job->exact, &job->labels}) one->reset();
    }
    const int64_t bytes = bytes_of(*job);
    if (!drawn_.push(std::move(job), bytes)) break;
  }
  drawn_.close();
}

}  // namespace cytra::pipelines
