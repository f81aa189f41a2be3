#include "inference/outputs/result.h"

#include <algorithm>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include "base/error.h"
#include "inference/outputs/measure.h"
#include "inference/outputs/objects.h"
#include "inference/predictor/original_grid.h"
#include "inference/predictor/windowed_model.h"
#include "ops/labels/label_blocks.h"
#include "ops/windows/sums.h"

namespace cytra::inference {
namespace {

/// The smallest type that can hold the labels.
io::Dtype label_dtype(const at::Tensor& labels) {
  const int64_t most = labels.numel() == 0 ? 0 : labels.max().item<int64_t>();
  return most <= UINT8_MAX ? io::Dtype::u8 : most <= UINT16_MAX ? io::Dtype::u16 : io::Dtype::u32;
}

bool take_objects(const ImageResult::Outputs& outputs) {
  return std::ranges::any_of(outputs, [](const auto& output) { return output->takes_objects(); });
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
      outputs_(std::move(outputs)),
      blocks_(label_blocks()),
      slabs_(works_by_slabs()
                 ? std::make_unique<ObjectSlabs>(options.steps, input_->sample.geometry())
                 : nullptr),
      is_whole_(!slabs_ && needs_whole()),
      is_moved_(moves_to_file()) {
  result_.is_labels = result_.is_objects = blocks_ != nullptr;
}

ImageResult::~ImageResult() = default;

/// What does the first step as rows come, where it makes labels of values that nobody else needs.
std::unique_ptr<ops::LabelBlocks> ImageResult::label_blocks() const {
  const WindowedModel& windowed = predictor_.windowed();
  const bool needs_values = options_.keeps_scored && windowed.steps.empty();
  const bool is_by_planes = windowed.plane_axis(input_->shape.size() - 1).has_value();
  const bool are_scores = !windowed.steps.empty() || !windowed.decoder->is_labels(windowed.form);
  if (options_.steps.empty() || needs_values || is_by_planes || !are_scores) return nullptr;
  return options_.steps[0]->by_rows({input_->shape.begin() + 1, input_->shape.end()},
                                    options_.folder);
}

/// Whether an image that is read by rows can be processed by slabs: only steps on objects need the
/// whole of it.
bool ImageResult::works_by_slabs() const {
  const PostprocessSteps& steps = options_.steps;
  return input_->is_by_rows() && !steps.empty() && !options_.keeps_scored &&
         !options_.original_grid && !take_objects(outputs_) &&
         predictor_.windowed().finish.channels(predictor_.model().out_channels) == 1 &&
         predictor_.windowed().decoder->is_labels(predictor_.windowed().form) &&
         std::ranges::all_of(steps, [](const auto& step) { return step->works_by_objects(); });
}

/// Labels of an image that fits into memory are kept whole, for the smallest type that holds them.
bool ImageResult::needs_whole() const {
  const bool needs_labels = blocks_ && (!input_->is_by_rows() || options_.steps.size() > 1);
  return options_.keeps_scored || (blocks_ ? needs_labels : !options_.steps.empty()) ||
         options_.original_grid || take_objects(outputs_);
}

bool ImageResult::moves_to_file() const {
  if (!options_.original_grid) return false;
  const io::Geometry own = input_->sample.geometry(), &loaded = input_->loaded_geometry;
  return !own.has_affine() || own.affine != loaded.affine ||
         at::IntArrayRef(input_->shape).slice(1) != at::IntArrayRef(input_->loaded_shape).slice(1);
}

void ImageResult::move_to_file(Result& result) const {
  to_grid(result,
          {input_->loaded_shape.begin() + 1, input_->loaded_shape.end()},
          input_->loaded_geometry);
}

/// Describes the result. `shape`: (C,[D,]H,W).
void ImageResult::describe(at::IntArrayRef shape, io::Dtype dtype) {
  io::ImageInfo image;
  image.geometry = is_whole_ ? result_.geometry : input_->sample.geometry();
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
    if (!is_whole_) shape[1] = input_->shape[1];
    describe(shape, dtype);
    has_info_ = true;
  }
  if (Decoder::is_uncertainty(predictor_.windowed().form)) {
    sum_ += rows.sum(at::kDouble).item<double>();
    count_ += static_cast<double>(rows.numel());
  }
  is_of_objects_ = slabs_ != nullptr || result_.is_objects;
  if (is_of_objects_ && !has_object_)
    has_object_ = rows.numel() > 0 && rows.max().item<double>() > 0;
  for (const auto& output : outputs_) output->take(*this, rows);
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

void ImageResult::run() {
  const WindowedModel& windowed = predictor_.windowed();
  windowed.run(*input_,
               windowed.windows(*input_),
               [&](int64_t, const std::vector<at::Tensor>& rows) { take(rows[0]); });
  finish();
}

void ImageResult::take(const at::Tensor& rows) {
  taken_ += rows.size(1);
  expect_size(std::max(taken_, input_->shape[1]), rows.size(-1));
  if (blocks_) {
    at::Tensor labels;
    apply_named(*options_.steps[0], [&] { labels = blocks_->add(rows).unsqueeze(0); });
    if (is_whole_) {
      rows_.push_back(labels);
    } else if (labels.numel() > 0) {
      put(labels, io::Dtype::u32);
    }
  } else if (is_whole_) {
    rows_.push_back(rows);
  } else if (slabs_) {
    const at::Tensor ended = slabs_->add(rows[0]).unsqueeze(0);
    if (ended.numel() > 0) put(ended, io::Dtype::u32);
  } else {
    put(rows, dtype_of(predictor_.windowed().finish));
  }
}

void ImageResult::finish() {
  expect_size(taken_, input_->shape.back());
  if (is_whole_) finish_whole();
  if (slabs_) {
    const at::Tensor rest = slabs_->finish().unsqueeze(0);
    if (rest.numel() > 0) put(rest, io::Dtype::u32);
  }
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

/// Applies the decoder's steps, then the others; the values in between are scored.
void ImageResult::apply_steps() {
  const auto apply = [&](auto from, auto to) { apply_all(PostprocessSteps(from, to), result_); };
  const auto begin = options_.steps.begin(), last = options_.steps.end();
  const auto own = begin + static_cast<std::ptrdiff_t>(predictor_.windowed().steps.size());
  const auto first = begin + (blocks_ ? 1 : 0);
  auto scored = own == begin ? first : last;  // of objects all steps count
  if (predictor_.windowed().decoder->gives_labels()) {
    scored = std::find_if(own, last, [](const auto& step) { return step->works_by_objects(); });
  }
  apply(first, scored);
  if (options_.keeps_scored)
    scored_ = (has_labels() ? labels(result_.values) : result_.values).clone();
  apply(scored, last);
}

void ImageResult::finish_whole() {
  result_.values = rows_.size() == 1 ? rows_[0] : at::cat(rows_, 1);
  rows_.clear();
  result_.geometry = input_->sample.geometry();
  result_.plane_axis = predictor_.windowed().plane_axis(input_->shape.size() - 1).value_or(-1);
  result_.input = [this] { return input_->loaded(); };
  result_.is_labels =
      blocks_ || (predictor_.windowed().steps.empty() &&
                  predictor_.windowed().decoder->is_labels(predictor_.windowed().form));
  io::Dtype dtype = dtype_of(predictor_.windowed().finish);
  if (!options_.steps.empty()) {
    if (result_.is_labels) result_.values = result_.values.to(at::kInt);
    apply_steps();
    dtype = result_.is_labels ? label_dtype(result_.values) : io::Dtype::f32;
  } else if (options_.keeps_scored) {
    scored_ = has_labels() ? labels(result_.values) : result_.values;
  }
  if (is_moved_) move_to_file(result_);
  put(result_.values, dtype);
  if (take_objects(outputs_)) give_objects();
}

const ModelInput& ImageResult::image() const {
  if (!is_moved_) return *input_;
  if (!image_) {
    Result shown;
    shown.values = input_->shown(0, input_->shape[1]).to(at::kFloat);
    shown.geometry = input_->sample.geometry();
    move_to_file(shown);
    image_ = ModelInput(shown.values);
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
  const Decoder& decoder = *predictor_.windowed().decoder;
  const bool is_known = result_.values.defined() || blocks_;
  const bool are_labels =
      is_known ? result_.is_labels : decoder.is_labels(predictor_.windowed().form);
  return are_labels ? rows
                    : decoder.labels_of(rows, predictor_.windowed().form, options_.threshold);
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
