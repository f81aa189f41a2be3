#include "app/serve/tensors/tensor_request.h"

#include <cstring>
#include <functional>
#include <mutex>
#include <utility>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "app/serve/http/json_body.h"
#include "app/serve/http/request_progress.h"
#include "app/serve/tensors/tensor_input.h"
#include "base/error.h"
#include "base/strings.h"
#include "data/sample/image_tensor.h"
#include "inference/predictor/windowed_model.h"
#include "io/grey.h"
#include "ops/windows/sums.h"

namespace cytra::app {
namespace {

constexpr int64_t kMostImages = 1024;            // of a request
constexpr int64_t kMostJsonNumbers = 4'194'304;  // of an answer: each takes 16 bytes of memory

/// An image in memory.
class TensorImage final : public io::ImageReader {
 public:
  explicit TensorImage(io::Image image) : image_(std::move(image)) {
    info_.dtype = image_.dtype;
    info_.shape = image_.shape;
  }
  io::Image read(const io::Region& region) const override {
    return io::crop(image_, region, "the tensor");
  }

 private:
  const io::Image image_;
};

/// What a request has and wants.
struct TensorQuestion {
  std::shared_ptr<HttpExchange> exchange;
  const SharedRegions& regions;
  InputTensor input;
  std::vector<OutputTensor> outputs;
  std::string model, id;
};

/// A request, until all of its results are there: of each output, and each image.
class TensorRequest : public std::enable_shared_from_this<TensorRequest> {
 public:
  explicit TensorRequest(TensorQuestion asked)
      : asked_(std::move(asked)),
        results_(asked_.outputs.size() * static_cast<std::size_t>(asked_.input.count)) {}

  struct Result {
    io::Dtype dtype = io::Dtype::f32;
    std::vector<int64_t> shape;  // K,[D,]H,W
    std::string bytes;
    std::shared_ptr<const RequestBudget::Share> share;  // of bytes
  };

  const InputTensor& input() const { return asked_.input; }
  const std::shared_ptr<RequestProgress>& progress() const { return asked_.exchange->progress; }
  void take(std::size_t place, Result result) {
    result.share = asked_.regions.count(std::ssize(result.bytes));
    results_[place] = std::move(result);
  }
  /// A part has ended; the last one makes the answer, and one that failed stops the others.
  void end(HttpResponse response) {
    if (response.status >= 400) {
      if (!is_stopped()) asked_.exchange->answer(std::move(response));
      return stop();
    }
    {
      const std::lock_guard lock(mutex_);
      if (++done_ < results_.size()) return;
    }
    try {
      asked_.exchange->answer(respond());
    } catch (const HttpError& error) {
      asked_.exchange->answer(error_response(error.status, error.what()));
    }
  }
  void on_end(std::function<void()> cancel) {
    bool is_stopped = false, is_first = false;
    {
      const std::lock_guard lock(mutex_);
      is_stopped = is_stopped_;
      is_first = !std::exchange(is_watched_, true);
      if (!is_stopped) cancels_.push_back(cancel);
    }
    if (is_stopped) return cancel();
    if (!is_first) return;
    asked_.exchange->on_end([self = weak_from_this()] {
      if (const auto own = self.lock()) own->stop();
    });
  }
  /// Parts that are ended for another one's failure have nothing to say.
  bool is_stopped() {
    const std::lock_guard lock(mutex_);
    return is_stopped_;
  }
  /// Ends the parts that have not come to their end, and those that follow.
  void stop() {
    std::vector<std::function<void()>> all;
    {
      const std::lock_guard lock(mutex_);
      is_stopped_ = true;
      all.swap(cancels_);
    }
    for (const auto& one : all) one();
  }

 private:
  HttpResponse respond() {
    Json answer{{"model_name", asked_.model}, {"model_version", "1"}};
    if (!asked_.id.empty()) answer["id"] = asked_.id;
    Json outputs = Json::array();
    std::string binary;
    int64_t json_numbers = 0;
    for (std::size_t o = 0; o < asked_.outputs.size(); ++o) {
      const OutputTensor& wanted = asked_.outputs[o];
      const auto images = static_cast<std::size_t>(asked_.input.count);
      Result first = std::move(results_[o * images]);
      std::string bytes = std::move(first.bytes);
      for (std::size_t i = 1; i < images; ++i) {
        const Result one = std::move(results_[o * images + i]);
        if (one.shape != first.shape || one.dtype != first.dtype)
          throw HttpError(422, "the images of the request have results of several sizes or types");
        bytes += one.bytes;
      }
      std::vector<int64_t> shape = first.shape;
      const std::size_t rank = asked_.input.shape.size(), dims = asked_.input.dims;
      if (shape.size() == dims) shape.insert(shape.begin() + 1, 1);  // a stack of one plane
      if (rank == dims + 2) shape.insert(shape.begin(), asked_.input.count);
      if (rank == dims && shape.front() == 1) shape.erase(shape.begin());
      Json output{{"name", wanted.name}, {"datatype", type_name(first.dtype)}, {"shape", shape}};
      if (!wanted.region.empty()) {
        if (std::ssize(bytes) > wanted.bytes) {
          throw HttpError(400,
                          "{}: {} bytes, but shared_memory_byte_size is {}",
                          wanted.name,
                          bytes.size(),
                          wanted.bytes);
        }
        asked_.regions.write(wanted.region, wanted.offset, bytes);
        output["parameters"] = {{"shared_memory_region", wanted.region},
                                {"shared_memory_offset", wanted.offset},
                                {"shared_memory_byte_size", bytes.size()}};
      } else if (wanted.is_binary) {
        output["parameters"] = {{"binary_data_size", bytes.size()}};
        binary += bytes;
      } else {
        json_numbers += static_cast<int64_t>(bytes.size() / io::size_of(first.dtype));
        if (json_numbers > kMostJsonNumbers)
          throw HttpError(413,
                          "{}: above {} numbers as JSON in all; expected binary_data "
                          "or shared memory",
                          wanted.name,
                          kMostJsonNumbers);
        output["data"] = numbers(bytes, first.dtype);
      }
      outputs.push_back(std::move(output));
    }
    answer["outputs"] = std::move(outputs);
    HttpResponse response{200, answer.dump()};
    if (binary.empty()) return response;
    response.headers.emplace_back("Inference-Header-Content-Length",
                                  std::to_string(response.body.size()));
    response.type = "application/octet-stream";
    response.body += binary;
    return response;
  }
  static Json numbers(const std::string& bytes, io::Dtype dtype) {
    Json list = Json::array();
    const auto add = [&](auto zero) {
      for (std::size_t at = 0; at < bytes.size(); at += sizeof zero) {
        std::memcpy(&zero, bytes.data() + at, sizeof zero);
        list.push_back(zero);
      }
    };
    if (dtype == io::Dtype::u8) add(uint8_t{});
    if (dtype == io::Dtype::u16) add(uint16_t{});
    if (dtype == io::Dtype::u32) add(uint32_t{});
    if (dtype == io::Dtype::f32) add(float{});
    return list;
  }

  const TensorQuestion asked_;
  std::vector<Result> results_;  // of each output its images; each is set by one thread
  std::mutex mutex_;
  std::size_t done_ = 0;                          // guarded by mutex_
  bool is_stopped_ = false, is_watched_ = false;  // guarded by mutex_
  std::vector<std::function<void()>> cancels_;    // guarded by mutex_
};

/// The exchange of one result of a request.
class TensorPart final : public HttpExchange {
 public:
  explicit TensorPart(std::shared_ptr<TensorRequest> request) : request_(std::move(request)) {
    progress = request_->progress();
  }
  void answer(HttpResponse response) override { request_->end(std::move(response)); }
  void on_end(std::function<void()> cancel) override { request_->on_end(std::move(cancel)); }
  void expire_in(double /*seconds*/) override {}

 private:
  const std::shared_ptr<TensorRequest> request_;
};

class TensorWork final : public ImageWork {
 public:
  TensorWork(std::shared_ptr<TensorRequest> request, std::size_t place, bool has_transforms)
      : request_(std::move(request)), place_(place), has_transforms_(has_transforms) {}

  std::shared_ptr<const inference::ModelInput> read(const PreparedModel& model) override {
    const inference::WindowedModel& windowed = model.predictor.windowed();
    const InputTensor& input = request_->input();
    const auto number = static_cast<int64_t>(place_) % input.count;
    io::Image image = input.image(number);
    const std::string id = fmt::format("image {}", number);
    const int64_t dims = windowed.image_dims(image.shape[1]);
    if (!has_transforms_) {
      const at::Tensor values = data::to_tensor(std::move(image), dims, id).to(at::kFloat);
      data::check_finite(values, id);
      auto made = std::make_shared<inference::ModelInput>(values);
      made->sample.id = id;
      return made;
    }
    data::Sample sample;
    sample.id = id;
    std::shared_ptr<const io::ImageReader> reader =
        std::make_shared<const TensorImage>(std::move(image));
    if (windowed.transforms.take_grey()) reader = io::grey_of(std::move(reader), id);
    sample.geometries[windowed.x_key] = {};
    sample.unread[windowed.x_key] = {reader, io::within({}, reader->info().shape, id), dims, id};
    return std::make_shared<const inference::ModelInput>(windowed.transforms.apply(
        std::move(sample), windowed.x_key, {}, inference::by_rows_from()));
  }

  inference::ImageResult::Outputs outputs(const PreparedModel& model) override {
    has_steps_ = !model.options.steps.empty();
    inference::ImageResult::Outputs outputs;
    outputs.push_back(std::make_unique<Rows>(*this));
    return outputs;
  }

  HttpResponse respond(const inference::ImageResult& /*result*/) override {
    TensorRequest::Result result;
    const at::Tensor all = rows_.size() == 1 ? rows_[0] : at::cat(rows_, 1);
    result.shape = all.sizes().vec();
    result.dtype = dtype_;
    const io::Image image = data::to_image(all, dtype_, {});
    result.bytes.assign(image.pixels.begin(), image.pixels.end());
    request_->take(place_, std::move(result));
    return {};
  }

 private:
  /// Takes the rows of the result.
  class Rows final : public inference::ResultOutput {
   public:
    explicit Rows(TensorWork& work) : work_(work) {}
    void take(const inference::ImageResult& result, const at::Tensor& rows) override {
      // The smallest type that holds the labels would differ from image to image.
      const bool is_label = work_.has_steps_ && result.info().dtype != io::Dtype::f32;
      work_.dtype_ = is_label ? io::Dtype::u32 : result.info().dtype;
      work_.rows_.push_back(rows.clone());
    }
    void finish(inference::ResultFiles& /*files*/) override {}

   private:
    TensorWork& work_;
  };

  const std::shared_ptr<TensorRequest> request_;
  const std::size_t place_;
  const bool has_transforms_;
  bool has_steps_ = false;
  io::Dtype dtype_ = io::Dtype::f32;
  std::vector<at::Tensor> rows_;
};

}  // namespace

HttpResponse describe_tensors(ServedModel& model) {
  const inference::WindowedModel& windowed = model.predictor().windowed();
  std::vector<int64_t> shape{-1, windowed.model.in_channels};
  shape.resize(static_cast<std::size_t>(2 + windowed.image_dims()), -1);
  Json outputs = Json::array();
  for (const std::string& form : model.forms()) {
    const ops::Finish finish = windowed.decoder->finish(form, 0.5);
    const bool has_steps = !model.prepared({"", form, {}})->options.steps.empty();
    std::vector<int64_t> own = shape;
    own[1] = has_steps ? -1 : finish.channels(windowed.model.out_channels);
    const io::Dtype dtype = has_steps ? io::Dtype::u32 : inference::dtype_of(finish);
    outputs.push_back({{"name", form}, {"datatype", type_name(dtype)}, {"shape", own}});
  }
  const Json body{
      {"name", model.name()},
      {"versions", {"1"}},
      {"platform", "cytra"},
      {"inputs", Json::array({{{"name", "image"}, {"datatype", "FP32"}, {"shape", shape}}})},
      {"outputs", outputs}};
  return {200, body.dump()};
}

void predict_tensors(ServedModel& model,
                     const std::shared_ptr<HttpExchange>& exchange,
                     const SharedRegions& regions) {
  std::string text = std::move(exchange->body), binary;
  const std::string length = exchange->head.header("inference-header-content-length");
  if (!length.empty()) {
    std::size_t size = 0;
    for (const char c : length)
      size = is_digit(c) && size <= text.size() ? size * 10 + static_cast<std::size_t>(c - '0')
                                                : SIZE_MAX;
    if (size > text.size())
      throw HttpError(400,
                      "Inference-Header-Content-Length: expected a number of bytes of the body");
    binary = text.substr(size);
    text = text.substr(0, size);
  }
  const auto parsed = regions.count(16 * std::ssize(text));  // each "1," 16 bytes
  const Json body = parse_object(text, kMostTensor);
  const Json& parameters = parameters_of(body);
  for (const auto& [name, value] : parameters.items()) {  // clients send what other servers read
    const std::vector<std::string> known{
        "head", "threshold", "transforms", "timeout", "binary_data_output"};
    const std::string meant = nearest(name, known);
    if (!meant.empty() && meant != name)
      throw HttpError(400, printable(name, 40) + ": unknown parameter." + suggestion(name, known));
  }
  AskedResult asked = asked_result_in(parameters);
  const bool has_transforms = json_member_or<bool>(parameters, "transforms", "true or false", true);
  if (parameters.contains("timeout")) {
    const auto microseconds = json_member<double>(parameters, "timeout", "microseconds");
    if (!(microseconds > 0 && microseconds <= 1e12))
      throw HttpError(400, "timeout: expected microseconds, above 0 and up to 1e12");
    exchange->expire_in(microseconds / 1e6);
  }
  const inference::WindowedModel& windowed = model.predictor(asked.head).windowed();
  const std::vector<std::string> forms = model.forms(asked.head);
  const std::vector<OutputTensor> outputs = outputs_of(body, forms.front());
  for (const OutputTensor& output : outputs) {
    if (!contains(forms, output.name))
      throw HttpError(
          400, "outputs: {}: expected one of {}", printable(output.name, 40), join(forms, ", "));
  }
  InputTensor input =
      input_of(body, std::move(binary), regions, windowed.image_dims(), windowed.model.in_channels);
  const int64_t images = input.count;
  if (images > kMostImages)
    throw HttpError(400, "{} images, expected at most {}", images, kMostImages);
  const auto request = std::make_shared<TensorRequest>(
      TensorQuestion{exchange,
                     regions,
                     std::move(input),
                     outputs,
                     model.name(),
                     json_member_or<std::string>(body, "id", "a text", "")});
  const std::size_t parts = outputs.size() * static_cast<std::size_t>(images);
  if (exchange->progress) exchange->progress->expect(static_cast<int64_t>(parts));
  try {
    for (std::size_t place = 0; place < parts; ++place) {
      asked.form = outputs[place / static_cast<std::size_t>(images)].name;
      model.submit(asked,
                   std::make_unique<TensorWork>(request, place, has_transforms),
                   std::make_shared<TensorPart>(request));
    }
  } catch (...) {
    request->stop();
    throw;
  }
}

}  // namespace cytra::app
