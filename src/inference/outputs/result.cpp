#include "inference/outputs/result.h"

#include <algorithm>
#include <numeric>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include "base/error.h"
#include "base/lists.h"
#include "inference/outputs/measure.h"
#include "inference/outputs/objects.h"
#include "inference/predictor/original_grid.h"
#include "inference/predictor/windowed_model.h"
#include "ops/labels/component_rows.h"
#include "ops/labels/row_step.h"
#include "ops/windows/sums.h"

namespace cytra::inference {
namespace {

/// The smallest type that can hold the labels.
io::Dtype label_dtype(const at::Tensor& labels) {
  const int64_t most = labels.numel() == 0 ? 0 : labels.max().item<int64_t>();
  return most <= UINT8_MAX ? io::Dtype::u8 : most <= UINT16_MAX ? io::Dtype::u16 : io::Dtype::u32;
}

/// Whether any output takes objects; `not_by_rows`: and can't take them as rows.
bool take_objects(const ImageResult::Outputs& outputs, bool not_by_rows = false) {
  return std::ranges::any_of(outputs, [=](const auto& output) {
    return output->takes_objects() && !(not_by_rows && output->takes_object_rows());
  });
}

/// Runs `work` of a stage: a step's errors tell its name.
void named(const auto& stage, const auto& work) {
  if (stage.step == nullptr) return work();
  apply_named(*stage.step, work);
}

}  // namespace

PostprocessSteps result_steps(const Predictor& predictor, const config::Node& more) {
  PostprocessSteps steps = predictor.windowed().steps;
  const auto add = [&](const config::Node& list) {
    for (auto& step : make_postprocess(list)) steps.push_back(step);
  };
  if (const config::Node* own = predictor.model().config.find("task.postprocess")) add(*own);
  add(more);
  return steps;
}

ImageResult::ImageResult(const Predictor& predictor,
                         const ResultOptions& options,
                         std::shared_ptr<const ModelInput> input,
                         Outputs outputs)
    : predictor_(predictor),
      options_(options),
      input_(std::move(input)),
      outputs_(std::move(outputs)) {
  begin_steps();
  begin_components(predictor_.windowed().finish.channels(predictor_.model().out_channels));
  is_whole_ = needs_whole();
  if (is_whole_) components_ = nullptr;
}

ImageResult::~ImageResult() = default;

/// The first step that comes after the values to score: of objects all steps count.
std::size_t ImageResult::scored_at() const {
  const PostprocessSteps& steps = options_.steps;
  const std::size_t own = predictor_.windowed().steps.size();
  if (!predictor_.windowed().decoder->gives_labels()) return own == 0 ? 0 : steps.size();
  return static_cast<std::size_t>(
      std::find_if(steps.begin() + static_cast<std::ptrdiff_t>(own),
                   steps.end(),
                   [](const auto& step) { return step->makes_objects(); }) -
      steps.begin());
}

/// Adds the way to the voxels of the file. `are_scores`: of which labels are made there.
void ImageResult::add_move(bool are_scores) {
  const WindowedModel& windowed = predictor_.windowed();
  ToFileGrid grid = windowed.to_file(*input_);
  grid.are_labels = result_.is_labels && !are_scores;
  if (are_scores) grid.finish = windowed.finish;
  grid.folder = input_->sample.folder;
  stages_.push_back({grid.rows()});
  result_.geometry = grid.file;
  is_moved_ = true;
}

/// Finds the steps that work while rows come: the first ones.
void ImageResult::begin_steps() {
  const WindowedModel& windowed = predictor_.windowed();
  result_.is_labels = windowed.steps.empty() && windowed.decoder->is_labels(windowed.form);
  result_.geometry = input_->sample.geometry();
  result_.plane_axis = windowed.plane_axis(input_->shape.size() - 1).value_or(-1);
  moves_scores_ = windowed.finish_of(*input_).kind != windowed.finish.kind;
  std::vector<int64_t> shape = input_->shape;
  if (moves_scores_) {
    add_move(true);
    shape = input_->loaded_shape;
  }
  shape[0] = windowed.finish.channels(predictor_.model().out_channels);
  const bool stops = options_.keeps_scored && !moves_scores_;
  const std::size_t most = stops ? scored_at() : options_.steps.size();
  for (; by_rows_ < most; ++by_rows_) {
    const Postprocess& step = *options_.steps[by_rows_];
    Stage stage{nullptr, &step, result_.is_labels};
    apply_named(step, [&] { stage.rows = step.by_rows(result_, shape, input_->sample.folder); });
    if (!stage.rows) break;
    stages_.push_back(std::move(stage));
  }
  if (input_->moves_back && !moves_scores_ && !stops && by_rows_ == options_.steps.size())
    add_move(false);
}

/// Prepares for objects of classes, whose rows come: where they are all in one channel.
void ImageResult::begin_components(int64_t channels) {
  if (result_.is_objects || channels != 1 || !has_labels() || !take_objects(outputs_)) return;
  const std::vector<int64_t>& shape = is_moved_ ? input_->loaded_shape : input_->shape;
  components_ = std::make_unique<ops::ComponentRows>(
      /*connectivity=*/0,
      std::vector<int64_t>(shape.begin() + 1, shape.end()),
      input_->sample.folder,
      [this](const std::vector<ops::ComponentRows::Component>& all) {
        classes_ = std::make_shared<const std::vector<int32_t>>(
            mapped(all, [](const auto& one) { return one.value; }));
        std::vector<int32_t> numbers(all.size());
        std::iota(numbers.begin(), numbers.end(), 0);
        return numbers;
      });
}

/// Labels of an image that fits into memory are kept whole, for the smallest type that holds them.
bool ImageResult::needs_whole() const {
  const bool needs_steps = by_rows_ < options_.steps.size();
  const bool are_small = by_rows_ > 0 && result_.is_labels && !input_->is_by_rows();
  return options_.keeps_scored || needs_steps || are_small ||
         take_objects(outputs_, /*not_by_rows=*/result_.is_objects || components_);
}

/// Describes the result. `shape`: (C,[D,]H,W).
void ImageResult::describe(at::IntArrayRef shape, io::Dtype dtype) {
  io::ImageInfo image;
  image.geometry = result_.geometry;
  image.shape = {
      input_->shape[0], shape.size() == 4 ? shape[1] : 1, shape[shape.size() - 2], shape.back()};
  info_ = predictor_.describe(image);
  info_.dtype = dtype;
  if (info_.shape[0] == shape[0]) return;
  info_.shape[0] = shape[0];  // steps have made others
  info_.channel_names.assign(static_cast<std::size_t>(shape[0]), predictor_.windowed().y_key);
}

/// Gives the outputs the next rows, or all.
void ImageResult::put(const at::Tensor& rows, io::Dtype dtype) {
  if (!has_info_) {
    std::vector<int64_t> shape = rows.sizes().vec();
    if (!is_whole_) shape[1] = (is_moved_ ? input_->loaded_shape : input_->shape)[1];
    describe(shape, dtype);
    has_info_ = true;
  }
  if (Decoder::is_uncertainty(predictor_.windowed().form)) {
    sum_ += rows.sum(at::kDouble).item<double>();
    count_ += static_cast<double>(rows.numel());
  }
  is_of_objects_ = result_.is_objects;
  if (is_of_objects_ && !has_object_)
    has_object_ = rows.numel() > 0 && rows.max().item<double>() > 0;
  for (const auto& output : outputs_)
    if (!components_ || !output->takes_objects()) output->take(*this, rows);
  if (components_) components_->add(labels(rows).to(at::kInt));
}

/// Gives the outputs the objects of classes, after the last rows.
void ImageResult::put_components() {
  has_components_ = true;
  for (at::Tensor rows = components_->rest(); rows.defined(); rows = components_->rest()) {
    for (const auto& output : outputs_)
      if (output->takes_objects()) output->take(*this, rows);
  }
}

/// Checks the size, as a foreign model may return results of another size.
void ImageResult::expect_size(int64_t rows, int64_t columns) const {
  if (rows == input_->shape[1] && columns == input_->shape.back()) return;
  throw DataError(
      "the model's result has {} rows (or planes) and {} columns, the image {} and {}; expected a "
      "model that gives each pixel a value",
      rows,
      columns,
      input_->shape[1],
      input_->shape.back());
}

int64_t ImageResult::work_bytes() const {
  int64_t most = 0;
  for (const Stage& stage : stages_) most = std::max(most, stage.rows->work_bytes());
  return most;
}

void ImageResult::run() {
  const WindowedModel& windowed = predictor_.windowed();
  windowed.run(*input_,
               windowed.windows(*input_, work_bytes()),
               [&](int64_t, const std::vector<at::Tensor>& rows) { take(rows[0]); });
  finish();
}

void ImageResult::take(const at::Tensor& rows) {
  taken_ += rows.size(1);
  expect_size(std::max(taken_, input_->shape[1]), rows.size(-1));
  if (moves_scores_ && options_.keeps_scored) {
    const ops::Finish& finish = predictor_.windowed().finish;
    scored_rows_.push_back(ops::finish(rows.unsqueeze(0), {}, finish)[0]);
  }
  pass(0, rows);
}

/// Gives rows to a stage, and what it makes of them to the next one; after the last, keeps them or
/// gives them to the outputs.
void ImageResult::pass(std::size_t stage, const at::Tensor& rows) {
  if (stage < stages_.size()) {
    const Stage& own = stages_[stage];
    const at::Tensor given = own.takes_labels ? rows.to(at::kInt) : rows;
    at::Tensor made;
    named(own, [&] { made = own.rows->add(given); });
    if (made.defined() && made.numel() > 0) pass(stage + 1, made);
  } else if (is_whole_) {
    rows_.push_back(rows);
  } else if (by_rows_ > 0 && result_.is_labels) {
    const bool are_few = !result_.is_objects && predictor_.model().out_channels <= UINT8_MAX;
    put(rows, are_few ? io::Dtype::u8 : io::Dtype::u32);
  } else {
    put(rows, dtype_of(predictor_.windowed().finish));
  }
}

void ImageResult::finish() {
  expect_size(taken_, input_->shape.back());
  for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
    for (bool is_more = true; is_more;) {
      at::Tensor rows;
      named(stages_[stage], [&] { rows = stages_[stage].rows->rest(); });
      is_more = rows.defined();
      if (is_more && rows.numel() > 0) pass(stage + 1, rows);
    }
  }
  if (is_whole_) finish_whole();
  if (components_) put_components();
  // The first one, the image, appears last: then the files beside it exist already.
  for (auto output = outputs_.rbegin(); output != outputs_.rend(); ++output) {
    ResultFiles own;
    (*output)->finish(own);
    files_.insert(files_.begin(), own.begin(), own.end());
  }
  outputs_.clear();  // with the parts of the image that they hold
  result_.values = at::Tensor();
  image_.reset();
}

/// Applies the other steps; the values in between are scored.
void ImageResult::apply_steps() {
  const auto apply = [&](std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < to; ++i)
      apply_named(*options_.steps[i], [&] { options_.steps[i]->apply(result_); });
  };
  const bool keeps = options_.keeps_scored && !moves_scores_;
  const std::size_t scored = keeps ? scored_at() : by_rows_;
  apply(by_rows_, scored);
  if (keeps) scored_ = (has_labels() ? labels(result_.values) : result_.values).clone();
  apply(scored, options_.steps.size());
}

void ImageResult::finish_whole() {
  result_.values = rows_.size() == 1 ? rows_[0] : at::cat(rows_, 1);
  rows_.clear();
  result_.input = [this] { return (moves_scores_ ? image() : *input_).loaded(); };
  io::Dtype dtype = dtype_of(predictor_.windowed().finish);
  if (!options_.steps.empty()) {
    if (result_.is_labels) result_.values = result_.values.to(at::kInt);
    apply_steps();
    dtype = result_.is_labels ? label_dtype(result_.values) : io::Dtype::f32;
  } else if (options_.keeps_scored && !moves_scores_) {
    scored_ = has_labels() ? labels(result_.values) : result_.values;
  }
  if (!scored_rows_.empty()) scored_ = at::cat(std::exchange(scored_rows_, {}), 1);
  if (input_->moves_back && !is_moved_) {
    add_move(false);
    result_.values = all_of(*stages_.back().rows, result_.values);
  }
  put(result_.values, dtype);
  if (take_objects(outputs_)) give_objects();
}

const ModelInput& ImageResult::image() const {
  if (!input_->moves_back) return *input_;
  if (!image_) {
    constexpr int64_t kRows = 16;
    ToFileGrid grid = predictor_.windowed().to_file(*input_);
    grid.coarse_from = 0;
    grid.folder = input_->sample.folder;
    const auto step = grid.rows();
    at::Tensor image;
    int64_t made = 0;  // rows
    const auto put = [&](const at::Tensor& rows) {
      if (!rows.defined()) return false;
      std::vector<int64_t> shape = grid.to;
      shape.insert(shape.begin(), rows.size(0));
      if (made == 0) image = ops::room_for(shape, at::kFloat, grid.folder);
      image.narrow(1, made, rows.size(1)).copy_(rows);
      made += rows.size(1);
      return true;
    };
    for (int64_t first = 0; first < grid.from[0]; first += kRows) {
      const int64_t count = std::min(kRows, grid.from[0] - first);
      put(step->add(input_->shown(first, count).to(at::kFloat)));
    }
    while (put(step->rest())) continue;
    image_ = ModelInput(image);
  }
  return *image_;
}

io::Selection ImageResult::selection_of(const std::string& path) const {
  for (const auto& [key, source] : input_->sample.sources)
    if (source.path == path) return source.selection;
  return {};
}

bool ImageResult::has_labels() const {
  return result_.is_labels ||
         predictor_.windowed().decoder->gives_labels(predictor_.windowed().form);
}

at::Tensor ImageResult::labels(const at::Tensor& rows) const {
  return result_.is_labels ? rows
                           : predictor_.windowed().decoder->labels_of(
                                 rows, predictor_.windowed().form, options_.threshold);
}

/// Gives the outputs objects channel by channel, so that only one channel is in memory as objects.
void ImageResult::give_objects() {
  if (!has_labels()) {
    throw ConfigError(
        "predict.measurements, predict.contours: values of predict.save={} are not objects; "
        "expected a mask or labels: predict.postprocess=[{{_target_: Threshold, threshold: 0.5}}]",
        predictor_.windowed().form);
  }
  const at::Tensor all = labels(result_.values);
  has_components_ = !result_.is_objects;
  int64_t first = 0;
  for (int64_t c = 0; c < all.size(0); ++c) {
    MaskObjects own{all[c].to(at::kInt), {}};
    if (has_components_) own = objects_of(all[c]);
    if (all.size(0) > 1) own.classes.clear();  // a channel is a class
    const ResultObjects objects(own.labels, first, own.classes, c);
    for (const auto& output : outputs_)
      if (output->takes_objects()) output->take(*this, objects);
    if (own.labels.numel() > 0) first += own.labels.max().item<int64_t>();
  }
}

ResultFiles predict_files(const Predictor& predictor,
                          const data::Sample& sample,
                          const ResultOptions& options,
                          const OutputPlace& place,
                          const std::vector<std::string>& outputs) {
  const c10::InferenceMode inference_mode;
  const auto input = std::make_shared<const ModelInput>(predictor.windowed().transforms.apply(
      sample, predictor.windowed().x_key, {}, by_rows_from()));
  predictor.windowed().check(*input);
  ImageResult::Outputs writers;
  for (const std::string& name : outputs) writers.push_back(make_result_output(name, place));
  ImageResult result(predictor, options, input, std::move(writers));
  result.run();
  return result.files();
}

}  // namespace cytra::inference
