#include "app/serve/preview.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "app/serve/form_data.h"
#include "app/serve/image_request.h"
#include "app/serve/json_body.h"
#include "inference/overlay_rows.h"
#include "inference/result.h"
#include "inference/windowed_model.h"
#include "io/png/write.h"

namespace cytra::app {
namespace {

constexpr int64_t kLargestPreview = 2048;  // pixels a side, as of overlays

/// Shape: planes (C,H,W) uint8.
std::string png_of(const at::Tensor& planes) {
  const at::Tensor own = planes.to(at::kByte).contiguous();
  io::Image image;
  image.shape = {own.size(0), 1, own.size(1), own.size(2)};
  const auto* begin = own.const_data_ptr<uint8_t>();
  image.pixels.assign(begin, begin + own.numel());
  return io::encode_png(image);
}

/// Shape: numbers (H,W) int32 -> (3,H,W): the lowest byte first.
at::Tensor coloured_numbers(const at::Tensor& numbers) {
  return at::stack({numbers.bitwise_and(255),
                    numbers.bitwise_right_shift(8).bitwise_and(255),
                    numbers.bitwise_right_shift(16).bitwise_and(255)});
}

struct Preview {
  std::string image, result;  // PNG
  Json about;
};

/// Keeps a plane of a result, and draws it.
class PreviewOutput final : public inference::ResultOutput {
 public:
  PreviewOutput(Preview& preview, std::string form, double threshold, int64_t plane)
      : preview_(preview), form_(std::move(form)), threshold_(threshold), plane_(plane) {}

  void take(const inference::ImageResult& result, const at::Tensor& rows) override {
    if (image_ == nullptr) begin(result);
    const int64_t count = rows.size(1);
    if (is_stack_) {
      if (plane_ >= next_ && plane_ < next_ + count)
        keep(drawn(result, rows.slice(1, plane_ - next_, plane_ - next_ + 1))
                 .select(1, 0)
                 .slice(1, 0, {}, step_));
    } else {
      const int64_t first = (step_ - next_ % step_) % step_;
      if (first < count) keep(drawn(result, rows.slice(1, first, count, step_)));
      background_->take(at::zeros({1, count, image_->shape[2]}, at::kByte));
    }
    next_ += count;
  }

  void finish(inference::ResultFiles&) override {
    const at::Tensor plane = at::cat(kept_, 1);
    io::Image picture;
    if (is_stack_) {
      picture = inference::draw_overlay(image_->shown(plane_, 1).select(1, 0),
                                        at::zeros({image_->shape[2], image_->shape[3]}, at::kInt));
    } else {
      picture = background_->picture();
    }
    preview_.image = io::encode_png(picture);
    if (kind_ == "image") {
      preview_.result = io::encode_png(
          inference::draw_overlay(plane, at::zeros({plane.size(1), plane.size(2)}, at::kInt)));
    } else {
      preview_.result = png_of(kind_ == "labels" ? coloured_numbers(plane[0]) : plane);
    }
    preview_.about = {{"kind", kind_},
                      {"threshold", threshold_},
                      {"plane", is_stack_ ? plane_ : 0},
                      {"planes", is_stack_ ? image_->shape[1] : 1},
                      {"shape", image_->shape},
                      {"step", step_}};
  }

 private:
  void begin(const inference::ImageResult& result) {
    image_ = &result.image();
    const auto rank = image_->shape.size();
    is_stack_ = rank == 4;
    step_ = (std::max(image_->shape[rank - 1], image_->shape[rank - 2]) - 1) / kLargestPreview + 1;
    if (form_ == "probability" && result.info().shape[0] == 1 &&
        result.info().dtype == io::Dtype::f32) {
      kind_ = "probability";
    } else if (result.has_labels()) {
      kind_ = "labels";
    }
    if (!is_stack_) {
      background_.emplace(*image_);
      return;
    }
    if (plane_ < 0) plane_ = image_->shape[1] / 2;
    if (plane_ >= image_->shape[1]) {
      throw HttpError(400,
                      fmt::format("plane={}: the image has {} planes, expected a number below",
                                  plane_,
                                  image_->shape[1]));
    }
  }

  /// Keeps each step_-th column, and none of the memory that the others are in.
  void keep(const at::Tensor& rows) {
    kept_.push_back(rows.slice(2, 0, {}, step_).clone(at::MemoryFormat::Contiguous));
  }

  /// Shape: (C,count,...) of the result -> (1,count,...) as it is kept.
  at::Tensor drawn(const inference::ImageResult& result, const at::Tensor& rows) const {
    if (kind_ == "probability") return rows.to(at::kFloat).mul(255).round().clamp(0, 255);
    if (kind_ == "image") return inference::shown_channels(rows).to(at::kFloat);
    const at::Tensor labels = result.labels(rows);
    if (labels.size(0) == 1) return labels.to(at::kInt);
    std::vector<int64_t> shape(static_cast<std::size_t>(labels.dim()), 1);
    shape[0] = labels.size(0);  // masks that overlap: the last one is visible
    return (at::arange(1, labels.size(0) + 1, at::kInt).view(shape) * labels.ne(0)).amax(0, true);
  }

  Preview& preview_;
  const std::string form_;
  const double threshold_;
  int64_t plane_;  // < 0: the middle one
  const inference::ModelInput* image_ = nullptr;
  bool is_stack_ = false;
  std::string kind_ = "image";
  int64_t step_ = 1, next_ = 0;
  std::vector<at::Tensor> kept_;
  std::optional<inference::OverlayRows> background_;  // of an image of one plane
};

class PreviewWork final : public ImageWork {
 public:
  PreviewWork(std::unique_ptr<ImageWork> file, int64_t plane)
      : file_(std::move(file)), plane_(plane) {}
  std::shared_ptr<const inference::ModelInput> read(const PreparedModel& model) override {
    return file_->read(model);
  }
  inference::ImageResult::Outputs outputs(const PreparedModel& model) override {
    inference::ImageResult::Outputs outputs;
    outputs.push_back(std::make_unique<PreviewOutput>(
        preview_, model.predictor.windowed().form, model.options.threshold, plane_));
    return outputs;
  }
  HttpResponse respond(const inference::ImageResult&) override {
    return form_response({{"about", "", preview_.about.dump(), "application/json"},
                          {"image", "image.png", std::move(preview_.image), "image/png"},
                          {"result", "result.png", std::move(preview_.result), "image/png"}});
  }
  std::string message(const std::string& what) const override { return file_->message(what); }

 private:
  const std::unique_ptr<ImageWork> file_;
  const int64_t plane_;
  Preview preview_;
};

/// Whether a mask's probability can be shown in its place: masks that steps change have none.
bool has_probability(ServedModel& model, ResultWish wish) {
  if (model.forms(wish.head).front() != "mask") return false;
  wish.form = "probability";
  try {
    const auto prepared = model.prepared(wish);
    return prepared->options.steps.empty() &&
           prepared->predictor.windowed().model.out_channels == 1;
  } catch (const HttpError&) {
    return false;
  }
}

}  // namespace

void preview_image(ServedModel& model,
                   const std::shared_ptr<HttpExchange>& exchange,
                   Spool& spool) {
  std::vector<std::string> known{"plane"};
  for (const ImageParameter& parameter : kImageParameters)
    if (parameter.is_of_preview) known.emplace_back(parameter.name);
  ImageRequest request = image_request_of(*exchange, known);
  request.file.format = "auto";
  int64_t plane = -1;
  if (exchange->head.query.count("plane") > 0)
    plane = whole_number_of("plane", exchange->head.parameter("plane"));
  if (request.wish.form.empty() && has_probability(model, request.wish))
    request.wish.form = "probability";
  model.submit(request.wish,
               std::make_unique<PreviewWork>(work_on_file(std::move(request.file), spool), plane),
               exchange);
}

}  // namespace cytra::app
