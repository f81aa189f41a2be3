#include "app/serve/page/preview.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>

#include "app/serve/http/form_data.h"
#include "inference/outputs/overlay_rows.h"
#include "inference/outputs/result.h"
#include "inference/predictor/windowed_model.h"
#include "io/fingerprint.h"
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

/// A plane of a stack; < 0: the middle one. Throws: HttpError beyond.
int64_t plane_in(const inference::ModelInput& image, int64_t plane) {
  if (plane < 0) return image.shape[1] / 2;
  if (plane < image.shape[1]) return plane;
  throw HttpError(
      400, "plane={}: the image has {} planes, expected a number below", plane, image.shape[1]);
}

/// Keeps each step-th column, and none of the memory that the others are in.
at::Tensor thinned(const at::Tensor& rows, int64_t step) {
  return rows.slice(2, 0, {}, step).clone(at::MemoryFormat::Contiguous);
}

at::Tensor no_labels(const at::Tensor& plane) {
  return at::zeros({plane.size(-2), plane.size(-1)}, at::kInt);
}

HttpResponse pictures(const Json& about, const io::Image& image, const at::Tensor& result) {
  const std::string& kind = about["kind"].get_ref<const std::string&>();
  const std::string drawn = kind == "image"
                                ? io::encode_png(inference::draw_overlay(result, no_labels(result)))
                                : png_of(kind == "labels" ? coloured_numbers(result[0]) : result);
  return form_response({{"about", "", about.dump(), "application/json"},
                        {"image", "image.png", io::encode_png(image), "image/png"},
                        {"result", "result.png", drawn, "image/png"}});
}

/// The pictures of a plane of a stack; < 0: of the middle one.
HttpResponse pictures_of_plane(const ShownStack& stack, int64_t plane) {
  Json about = stack.about;
  about["plane"] = plane = plane_in(*stack.image, plane);
  const at::Tensor image = stack.image->shown(plane, 1).select(1, 0);
  return pictures(about,
                  inference::draw_overlay(image, no_labels(image)),
                  stack.planes.at(static_cast<std::size_t>(plane - stack.first)));
}

/// Keeps what is shown of a result, and draws it.
class PreviewOutput final : public inference::ResultOutput {
 public:
  PreviewOutput(HttpResponse& response,
                std::string form,
                double threshold,
                int64_t plane,
                const std::shared_ptr<ShownStack>& stack)
      : response_(response),
        form_(std::move(form)),
        threshold_(threshold),
        plane_(plane),
        stack_(stack) {}

  void take(const inference::ImageResult& result, const at::Tensor& rows) override {
    if (kind_.empty()) begin(result);
    const int64_t count = rows.size(1);
    if (is_stack_) {
      for (int64_t row = 0; row < count; ++row)
        if (keeps_all_ || next_ + row == plane_)
          kept_.push_back(thinned(
              drawn(result, rows.slice(1, row, row + 1)).select(1, 0).slice(1, 0, {}, step_),
              step_));
    } else {
      const int64_t first = (step_ - next_ % step_) % step_;
      if (first < count)
        kept_.push_back(thinned(drawn(result, rows.slice(1, first, count, step_)), step_));
      background_->take(at::zeros({1, count, image_->shape[2]}, at::kByte));
    }
    next_ += count;
  }

  void finish(inference::ResultFiles&) override {
    const Json about{{"kind", kind_},
                     {"threshold", threshold_},
                     {"plane", 0},
                     {"planes", is_stack_ ? image_->shape[1] : 1},
                     {"shape", image_->shape},
                     {"step", step_}};
    if (is_stack_) {
      stack_->about = about;
      stack_->planes = std::move(kept_);
      stack_->first = keeps_all_ ? 0 : plane_;
      response_ = pictures_of_plane(*stack_, plane_);
    } else {
      response_ = pictures(about, background_->picture(), at::cat(kept_, 1));
    }
  }

 private:
  void begin(const inference::ImageResult& result) {
    image_ = &result.image();
    const auto rank = image_->shape.size();
    is_stack_ = rank == 4;
    step_ = (std::max(image_->shape[rank - 1], image_->shape[rank - 2]) - 1) / kLargestPreview + 1;
    kind_ = "image";
    if (form_ == "probability" && result.info().shape[0] == 1 &&
        result.info().dtype == io::Dtype::f32) {
      kind_ = "probability";
    } else if (result.has_labels()) {
      kind_ = "labels";
    }
    if (is_stack_) {
      plane_ = plane_in(*image_, plane_);
      keeps_all_ = !image_->is_by_rows();
    } else {
      background_.emplace(*image_);
    }
  }

  /// Shape: (C,count,...) of the result -> (1,count,...) as it is kept.
  at::Tensor drawn(const inference::ImageResult& result, const at::Tensor& rows) const {
    if (kind_ == "probability") return rows.mul(255).round().clamp(0, 255).to(at::kByte);
    if (kind_ == "image") return inference::shown_channels(rows).to(at::kFloat);
    const at::Tensor labels = result.labels(rows);
    if (labels.size(0) == 1) return labels.to(at::kInt);
    std::vector<int64_t> shape(static_cast<std::size_t>(labels.dim()), 1);
    shape[0] = labels.size(0);  // masks that overlap: the last one is visible
    return (at::arange(1, labels.size(0) + 1, at::kInt).view(shape) * labels.ne(0)).amax(0, true);
  }

  HttpResponse& response_;
  const std::string form_;
  const double threshold_;
  int64_t plane_;  // < 0: the middle one
  const std::shared_ptr<ShownStack> stack_;
  const inference::ModelInput* image_ = nullptr;
  bool is_stack_ = false, keeps_all_ = false;
  std::string kind_;
  int64_t step_ = 1, next_ = 0;
  std::vector<at::Tensor> kept_;                      // rows, or planes of a stack
  std::optional<inference::OverlayRows> background_;  // of an image of one plane
};

class PreviewWork final : public FileWork {
 public:
  PreviewWork(ImageFile file,
              RequestFolders& folders,
              int64_t plane,
              ShownStacks& stacks,
              std::shared_ptr<ShownStack> stack)
      : FileWork(std::move(file), folders),
        plane_(plane),
        stacks_(stacks),
        stack_(std::move(stack)) {}
  std::shared_ptr<const inference::ModelInput> read(const PreparedModel& model) override {
    return stack_->image = FileWork::read(model);
  }
  inference::ImageResult::Outputs outputs(const PreparedModel& model) override {
    inference::ImageResult::Outputs outputs;
    outputs.push_back(std::make_unique<PreviewOutput>(
        response_, model.predictor.windowed().form, model.options.threshold, plane_, stack_));
    return outputs;
  }
  HttpResponse respond(const inference::ImageResult&) override {
    if (stack_->planes.size() > 1) stacks_.add(stack_);
    return std::move(response_);
  }

 private:
  const int64_t plane_;
  ShownStacks& stacks_;
  const std::shared_ptr<ShownStack> stack_;
  HttpResponse response_;
};

/// Whether a mask's probability can be shown in its place: masks that steps change have none.
bool has_probability(ServedModel& model, AskedResult asked) {
  if (model.forms(asked.head).front() != "mask") return false;
  asked.form = "probability";
  try {
    const auto prepared = model.prepared(asked);
    return prepared->options.steps.empty() &&
           prepared->predictor.windowed().model.out_channels == 1;
  } catch (const HttpError&) {
    return false;
  }
}

}  // namespace

int64_t ShownStack::bytes() const {
  int64_t bytes =
      2 * static_cast<int64_t>(sizeof(float));  // as the model takes it, and as it is shown
  for (const int64_t side : image->shape) bytes *= side;
  for (const at::Tensor& plane : planes) bytes += static_cast<int64_t>(plane.nbytes());
  return bytes;
}

std::shared_ptr<const ShownStack> ShownStacks::find(
    const std::string& key, const std::shared_ptr<const PreparedModel>& model) {
  const std::lock_guard lock(mutex_);
  for (auto own = stacks_.begin(); own != stacks_.end(); ++own) {
    if ((*own)->key != key || (*own)->model.lock() != model) continue;
    stacks_.splice(stacks_.begin(), stacks_, own);
    return *own;
  }
  return nullptr;
}

void ShownStacks::add(std::shared_ptr<const ShownStack> stack) {
  const std::lock_guard lock(mutex_);
  stacks_.push_front(std::move(stack));
  int64_t bytes = 0;
  for (auto own = stacks_.begin(); own != stacks_.end();) {
    const int64_t more = (*own)->bytes();
    const bool is_kept = bytes + more <= most_ && !(*own)->model.expired();
    if (is_kept) bytes += more;
    own = is_kept ? std::next(own) : stacks_.erase(own);
  }
}

const std::vector<Parameter>& preview_parameters() {
  static const std::vector<Parameter> all =
      image_parameters({{"plane", "of a stack; the middle one by default"}});
  return all;
}

void preview_image(ServedModel& model,
                   const std::shared_ptr<HttpExchange>& exchange,
                   RequestFolders& folders,
                   ShownStacks& stacks) {
  ImageRequest request = image_request_of(*exchange, preview_parameters());
  request.file.format = "auto";
  const int64_t plane = whole_number_in(exchange->head, "plane").value_or(-1);
  if (request.asked.form.empty() && has_probability(model, request.asked))
    request.asked.form = "probability";
  const ImageFile& file = request.file;
  const std::string key = fmt::format("{} {} {} {} {}",
                                      file.scene,
                                      file.timepoint,
                                      io::fingerprint(file.content),
                                      file.name,
                                      file.type);
  const auto prepared = model.prepared(request.asked);
  if (const auto known_stack = stacks.find(key, prepared)) {
    const c10::InferenceMode inference_mode;
    return exchange->answer(pictures_of_plane(*known_stack, plane));
  }
  auto stack = std::make_shared<ShownStack>();
  stack->key = key;
  stack->model = prepared;
  model.submit(request.asked,
               std::make_unique<PreviewWork>(
                   std::move(request.file), folders, plane, stacks, std::move(stack)),
               exchange);
}

}  // namespace cytra::app
