#include "pipelines/video/early_exit.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "base/error.h"
#include "ops/windows/sums.h"

namespace cytra::pipelines {
namespace {

using Kind = ops::Finish::Kind;

int64_t scaled_side(int64_t side, double scale) {
  return std::max<int64_t>(std::llround(static_cast<double>(side) * scale), 1);
}

}  // namespace

at::Tensor confidence_of(const at::Tensor& logits, const ops::Finish& finish) {
  at::Tensor sure, classes;  // (S,h,w); (S,K' or 1,h,w)
  if (finish.kind == Kind::argmax) {
    std::tie(sure, classes) = at::softmax(logits, 1, at::kFloat).max(1, true);
  } else {
    const double t = finish.threshold;
    const at::Tensor p = logits.to(at::kFloat).sigmoid();
    classes = p.ge(t).to(at::kByte);
    sure = at::where(classes.ne(0), 0.5 + (p - t) * (0.5 / (1 - t)), 0.5 + (t - p) * (0.5 / t));
  }
  const at::Tensor is_mixed = classes.amin({2, 3}).ne(classes.amax({2, 3})).any(1);
  return sure.amin({1, 2, 3}).masked_fill(is_mixed, 0);
}

EarlyExit::EarlyExit(const inference::Predictor& predictor,
                     double min_confidence,
                     std::vector<double> scales)
    : predictor_(predictor), min_confidence_(min_confidence), scales_(std::move(scales)) {
  const Kind kind = predictor.windowed().finish.kind;
  if (predictor.windowed().steps.empty() && (kind == Kind::argmax || kind == Kind::threshold))
    return;
  throw ConfigError(
      fmt::format("video.min_confidence: {} gives no probabilities of classes or masks, and only "
                  "these say how sure the model is; leave it at 0",
                  predictor.model().path));
}

std::vector<at::Tensor> EarlyExit::forward(const at::Tensor& batch) const {
  std::vector<at::Tensor> outputs{predictor_.windowed().forward(batch).at(0)};
  if (outputs[0].sizes().slice(2) == batch.sizes().slice(2)) return outputs;
  throw ConfigError("video.min_confidence: " + predictor_.model().path +
                    " gives values of another resolution than its image's; leave it at 0");
}

/// `batch`: windows of the image (`channels` channels) and of the logits of the previous scale.
at::Tensor EarlyExit::forward_unsure(const at::Tensor& batch, int64_t channels, bool is_whole) {
  at::Tensor values = batch.narrow(1, channels, batch.size(1) - channels).contiguous();
  const at::Tensor unsure = confidence_of(values, predictor_.windowed().finish)
                                .ge(min_confidence_)
                                .logical_not()  // what is NaN, too
                                .nonzero()
                                .flatten();
  if (is_whole) {
    windows_ += batch.size(0);
    skipped_ += batch.size(0) - unsure.size(0);
  }
  if (unsure.size(0) == 0) return values;
  const auto layout = batch.suggest_memory_format();
  const at::Tensor own = batch.narrow(1, 0, channels).index_select(0, unsure).contiguous(layout);
  const at::Tensor fine = forward(own)[0].to(values.scalar_type());
  return unsure.size(0) == batch.size(0) ? fine : values.index_copy_(0, unsure, fine);
}

/// The image's logits, (N,K,H,W). `logits`: those of the scale before, in this size; undefined at
/// the first one. They go through the windows as further channels of the image.
at::Tensor EarlyExit::predict_scale(const std::string& id,
                                    const at::Tensor& image,
                                    const at::Tensor& logits,
                                    bool is_whole) {
  const inference::SlidingWindowOptions windows =
      predictor_.windowed().windows(id, {image.size(2), image.size(3)});
  if (!logits.defined()) {
    const inference::Forward all = [this](const at::Tensor& batch) { return forward(batch); };
    return inference::sliding_window(image, all, windows).at(0);
  }
  const inference::Network some = [&](const at::Tensor& batch) {
    return forward_unsure(batch, image.size(1), is_whole);
  };
  return inference::sliding_window(at::cat({image, logits.to(image.device())}, 1), some, windows);
}

std::vector<at::Tensor> EarlyExit::predict(
    const std::vector<const inference::ModelInput*>& inputs) {
  std::vector<at::Tensor> images;
  for (const inference::ModelInput* input : inputs)
    images.push_back(input->rows(0, input->shape[1]));
  const at::Tensor whole = at::stack(images).to(predictor_.windowed().device);
  const std::string& id = inputs.at(0)->sample.id;
  const int64_t height = whole.size(2), width = whole.size(3);
  at::Tensor logits;
  for (std::size_t level = 0; level <= scales_.size(); ++level) {
    at::Tensor image = whole;
    if (level < scales_.size()) {
      image = at::_upsample_bilinear2d_aa(
          whole, {scaled_side(height, scales_[level]), scaled_side(width, scales_[level])}, false);
    }
    if (logits.defined())
      logits = at::upsample_bilinear2d(logits, {image.size(2), image.size(3)}, false);
    logits = predict_scale(id, image, logits, level == scales_.size());
  }
  std::vector<at::Tensor> values;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const at::Tensor own = logits.narrow(0, static_cast<int64_t>(i), 1);
    if (!own.isfinite().all().item<bool>()) {
      throw DataError(inputs[i]->sample.id +
                      ": the model makes values of it that are NaN or infinite");
    }
    values.push_back(ops::finish(own, {}, predictor_.windowed().finish)[0].cpu());
  }
  return values;
}

}  // namespace cytra::pipelines
