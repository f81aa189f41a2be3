#include "pipelines/batching/batching_service.h"

#include <algorithm>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "device/error.h"
#include "perf/measure.h"
#include "pipelines/batching/batcher.h"

namespace cytra::pipelines {
namespace {

/// The shape of an image (C,[D,]H,W) whose sides are multiples of `pad_to`.
std::vector<int64_t> padded_shape(std::vector<int64_t> image, int64_t pad_to) {
  if (pad_to == 0) return image;
  for (std::size_t i = 1; i < image.size(); ++i)
    image[i] = (image[i] + pad_to - 1) / pad_to * pad_to;
  return image;
}

std::string bucket_of(const std::vector<int64_t>& image, const at::TensorOptions& type) {
  return fmt::format("{} {} {}",
                     fmt::join(image, "x"),
                     c10::toString(c10::typeMetaToScalarType(type.dtype())),
                     type.device().str());
}

/// A copy, which the caller can't change and the model may.
at::Tensor padded_copy(const at::Tensor& input, const std::vector<int64_t>& image) {
  if (input.sizes().slice(1) == at::IntArrayRef(image)) return input.clone();
  std::vector<int64_t> ends;  // of the last dimension first: before, after
  for (int64_t d = input.dim() - 1; d >= 2; --d) {
    ends.push_back(0);
    ends.push_back(image[static_cast<std::size_t>(d - 1)] - input.size(d));
  }
  return at::constant_pad_nd(input, ends, 0);
}

}  // namespace

struct BatchingService::Request::State final : BatchRequest {
  void succeed() override { promise.set_value(answer); }
  void fail(std::exception_ptr error) override { promise.set_exception(std::move(error)); }
  /// The images [begin, begin + part.size(0)) are computed.
  void take(const at::Tensor& part) {
    parts.push_back(part);
    done += part.size(0);
    if (done < images) return;
    answer = parts.size() == 1 ? parts[0] : at::cat(parts);
    if (!is_padded()) return;
    const at::IntArrayRef whole = input.sizes().slice(2);
    if (answer.dim() != input.dim()) return;  // no image: a value for each
    if (answer.sizes().slice(2) != whole) {
      throw DataError("pad_to: images of {} are answered by images of {}, which can't be cropped",
                      fmt::join(whole, "x"),
                      fmt::join(answer.sizes().slice(2), "x"));
    }
    for (int64_t d = 2; d < answer.dim(); ++d)
      answer = answer.narrow(d, 0, size[static_cast<std::size_t>(d - 2)]);
  }
  bool is_padded() const { return input.sizes().slice(2) != at::IntArrayRef(size); }

  at::Tensor input, answer;
  std::vector<int64_t> size;  // ([D,]H,W) that was asked for
  std::vector<at::Tensor> parts;
  int64_t done = 0;
  std::promise<at::Tensor> promise;
};

struct BatchingService::Impl {
  Impl(Model own_model, const BatchingOptions& own_options)
      : model(std::move(own_model)),
        options(own_options),
        batcher(own_options, [this](const Batch& batch) { compute(batch); }) {}

  at::Tensor run(const at::Tensor& images) const {
    const at::NoGradGuard no_grad;
    at::Tensor answer = model(images);
    if (!answer.defined() || answer.dim() == 0 || answer.size(0) != images.size(0)) {
      throw DataError("the model answers {} images by ({}), expected one answer for each",
                      images.size(0),
                      answer.defined() ? fmt::format("{}", fmt::join(answer.sizes(), ",")) : "");
    }
    return answer;
  }

  void compute(const Batch& batch) {
    std::vector<at::Tensor> parts;
    for (const BatchSlice& slice : batch.slices) {
      const auto& request = static_cast<const Request::State&>(*slice.request);
      parts.push_back(request.input.narrow(0, slice.begin, slice.count));
    }
    const at::Tensor images = parts.size() == 1 ? parts[0] : at::cat(parts);
    const at::Tensor answers = run(images);
    int64_t values = images.numel(), asked = 0, begin = 0;
    for (const BatchSlice& slice : batch.slices) {
      auto& request = static_cast<Request::State&>(*slice.request);
      request.take(answers.narrow(0, begin, slice.count));
      begin += slice.count;
      int64_t own = slice.count * images.size(1);
      for (const int64_t side : request.size) own *= side;
      asked += own;
    }
    batcher.count_values(values, values - asked);
  }

  const Model model;
  const BatchingOptions options;
  Batcher batcher;  // its thread ends before the rest
};

BatchingService::BatchingService(Model model, const BatchingOptions& options) {
  options.check();
  impl_ = std::make_unique<Impl>(std::move(model), options);
}

BatchingService::~BatchingService() = default;

bool BatchingService::Request::cancel() {
  const std::shared_ptr<State> state = state_.lock();
  return state && service_->impl_->batcher.cancel(state);
}

BatchingService::Request BatchingService::submit(const at::Tensor& input, BatchTime deadline) {
  if (!input.defined() || (input.dim() != 4 && input.dim() != 5) || input.numel() == 0) {
    throw DataError("a request of ({}): expected images (n,C,[D,]H,W), n at least 1",
                    input.defined() ? fmt::format("{}", fmt::join(input.sizes(), ",")) : "nothing");
  }
  Request request;
  request.service_ = this;
  const auto own = std::make_shared<Request::State>();
  request.state_ = own;
  Request::State& state = *own;
  state.size = input.sizes().slice(2).vec();
  const std::vector<int64_t> image =
      padded_shape(input.sizes().slice(1).vec(), impl_->options.pad_to);
  state.input = padded_copy(input, image);
  state.bucket = bucket_of(image, input.options());
  state.images = input.size(0);
  state.bytes = static_cast<int64_t>(state.input.nbytes());
  state.deadline = deadline;
  request.answer = state.promise.get_future();
  impl_->batcher.submit(own);
  return request;
}

std::map<int64_t, double> BatchingService::warm_up(const std::vector<int64_t>& shape,
                                                   const at::TensorOptions& type) {
  const bool is_image = shape.size() == 3 || shape.size() == 4;
  if (!is_image || std::ranges::any_of(shape, [](int64_t n) { return n < 1; })) {
    throw DataError("warm_up() for images of ({}), expected (C,[D,]H,W), each 1 at least",
                    fmt::join(shape, ","));
  }
  const std::vector<int64_t> image = padded_shape(shape, impl_->options.pad_to);
  const int64_t most = impl_->options.max_batch_size;
  std::map<int64_t, double> seconds;
  impl_->batcher.run_between([&] {
    for (int64_t size = 1;; size = std::min(2 * size, most)) {
      std::vector<int64_t> sizes = image;
      sizes.insert(sizes.begin(), size);
      const auto time = [&] {
        const at::Tensor images = at::zeros(sizes, type);
        return perf::measure([&] { impl_->run(images); }, {1, 2}, images.device()).best_s();
      };
      const auto fastest = size == 1 ? std::optional(time()) : device::if_it_fits(time);
      if (!fastest) return;
      seconds[size] = *fastest;
      if (size == most) return;
    }
  });
  impl_->batcher.warm(bucket_of(image, type), seconds);
  return seconds;
}

int64_t BatchingService::full_size(const std::vector<int64_t>& shape,
                                   const at::TensorOptions& type) const {
  return impl_->batcher.full_size(bucket_of(padded_shape(shape, impl_->options.pad_to), type));
}

void BatchingService::drain() {
  impl_->batcher.drain();
}

void BatchingService::stop() {
  impl_->batcher.stop();
}

BatchingFigures BatchingService::figures() const {
  return impl_->batcher.figures();
}

}  // namespace cytra::pipelines
