#include "app/serve/models/served_model.h"

#include <algorithm>
#include <utility>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/serve/http/json_body.h"
#include "app/serve/http/request_progress.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "device/device.h"
#include "device/error.h"
#include "inference/predictor/windowed_model.h"
#include "tasks/whole_images/image_target.h"

namespace cytra::app {
namespace {

constexpr std::size_t kPreparedModels = 32;  // that are kept
constexpr std::size_t kServeThreads = 2;     // that read, and as many that finish

inference::ModelConfig model_config(const ServeConfig& config, std::vector<std::string> paths) {
  inference::ModelConfig own;
  own.checkpoint = config.checkpoint;
  own.checkpoint.ckpt_path = std::move(paths);
  own.inference_args = config.inference_args;
  own.tta = config.tta;
  own.performance = config.performance;
  own.model = config.model;
  return own;
}

/// Gives the model windows as those of a large image, of which its engine is made.
void warm_up(const inference::WindowedModel& model) {
  const config::Node* patch = model.model.config.find("patch_shape");
  if (patch == nullptr || patch->kind != config::Kind::list) return;
  auto size = patch->as<std::vector<int64_t>>();
  if (std::ssize(size) != model.model.spatial_dims ||
      model.image_dims() != model.model.spatial_dims)
    return;
  for (int64_t& side : size) side *= 4;
  const inference::SlidingWindowOptions windows = model.windows("the first image", size);
  std::vector<int64_t> shape{windows.sw_batch_size, model.model.in_channels};
  for (std::size_t d = 0; d < size.size(); ++d)
    shape.push_back(windows.roi_size[d] > 0 ? windows.roi_size[d] : size[d]);
  model.forward(at::rand(shape).to(model.device));
}

int status_of(const std::exception& error) {
  if (const auto* known = dynamic_cast<const HttpError*>(&error)) return known->status;
  if (const auto* refused = dynamic_cast<const pipelines::RequestError*>(&error))
    return refused->outcome == pipelines::Outcome::timed_out ? 504 : 503;
  if (dynamic_cast<const MemoryError*>(&error) != nullptr) return 507;
  if (dynamic_cast<const IoError*>(&error) != nullptr) return 500;
  return exit_code(error) == 2 ? 422 : 500;
}

void check_wanted(bool is_abandoned) {
  if (is_abandoned)
    throw pipelines::RequestError(pipelines::Outcome::cancelled, "nobody waits any more");
}

}  // namespace

AskedResult asked_result_in(const Json& parameters) {
  constexpr const char* kShare = "a number from 0 to 1";
  AskedResult asked;
  asked.head = json_member_or<std::string>(parameters, "head", "a text", "");
  if (!parameters.contains("threshold")) return asked;
  asked.threshold = json_member<double>(parameters, "threshold", kShare);
  if (!(*asked.threshold >= 0 && *asked.threshold <= 1)) throw_member("threshold", kShare, false);
  return asked;
}

class ServedModel::Job final : public pipelines::BatchRequest,
                               public std::enable_shared_from_this<Job> {
 public:
  Job(ServedModel& model,
      std::shared_ptr<const PreparedModel> own,
      std::unique_ptr<ImageWork> work,
      std::shared_ptr<HttpExchange> exchange)
      : prepared(std::move(own)),
        model_(model),
        work_(std::move(work)),
        exchange_(std::move(exchange)),
        number_(++model.begun_) {
    ++model_.open_;
  }
  ~Job() override { --model_.open_; }

  /// Does some of the work; an error is the answer.
  bool attempt(const auto& work) {
    try {
      const c10::InferenceMode inference_mode;
      device::guarded(work);
      return true;
    } catch (const std::exception& error) {
      answer(error);
      return false;
    }
  }
  void answer(const std::exception& error) {
    const HttpError told = work_->told(status_of(error), error.what());
    if (told.status == 500) log::warn("{}: {}", model_.name_, told.what());
    exchange_->answer(error_response(told.status, told.what()));
  }
  void read() {
    input = work_->read(*prepared);
    prepared->predictor.windowed().check(*input);
    result = std::make_unique<inference::ImageResult>(
        prepared->predictor, prepared->options, input, work_->outputs(*prepared));
    bytes = input->is_by_rows() ? 0 : static_cast<int64_t>(sizeof(float));
    for (const int64_t side : input->shape) bytes *= side;
    bucket = fmt::format("{} {}", prepared->key, fmt::join(input->shape, "x"));
    if (input->is_by_rows()) bucket += fmt::format(" alone {}", number_);
  }
  void compute() {
    check_wanted(is_abandoned);
    const inference::WindowedModel& windowed = prepared->predictor.windowed();
    windowed.run(
        *input,
        windowed.windows(*input),
        [&](int64_t, const std::vector<at::Tensor>& outputs) { take(outputs[0]); },
        [&](int64_t done, int64_t total) {
          check_wanted(is_abandoned);
          report(done, total);
        });
  }
  /// Tells the client, where it asks, how many of the image's windows are done.
  void report(int64_t done, int64_t total) {
    if (exchange_->progress) exchange_->progress->add(reported_, done, total);
  }
  /// Takes rows of the model. Those of an image that is read by rows are written at once.
  void take(const at::Tensor& rows) {
    if (input->is_by_rows()) {
      result->take(rows);
    } else {
      rows_.push_back(rows);
    }
  }
  void succeed() override {
    model_.finishers_->post([self = shared_from_this()] {
      if (self->is_abandoned || self->has_failed) return;
      self->attempt([&] {
        for (const at::Tensor& rows : self->rows_) self->result->take(rows);
        self->result->finish();
        self->exchange_->answer(self->work_->respond(*self->result));
      });
    });
  }
  void fail(std::exception_ptr error) override {
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& known) {
      answer(known);
    }
  }

  const std::shared_ptr<const PreparedModel> prepared;
  std::shared_ptr<const inference::ModelInput> input;
  std::unique_ptr<inference::ImageResult> result;
  std::atomic<bool> is_abandoned{false}, has_failed{false};

 private:
  ServedModel& model_;
  const std::unique_ptr<ImageWork> work_;
  const std::shared_ptr<HttpExchange> exchange_;
  const int64_t number_;  // of the model's requests
  int64_t reported_ = 0;  // windows
  std::vector<at::Tensor> rows_;
};

ServedModel::ServedModel(std::string name,
                         const ServeConfig& config,
                         std::vector<std::string> paths)
    : name_(std::move(name)),
      form_(config.predict.save == "auto" ? "" : config.predict.save),
      threshold_(config.predict.threshold),
      postprocess_(config.predict.postprocess) {
  const inference::ModelConfig own = model_config(config, std::move(paths));
  const c10::Device device = device::choose_device(config.trainer.accelerator);
  inference::Subject subject = inference::load_subject(own, device, config.trainer.precision);
  inference::scale_objects(subject, config.predict.diameter, config.predict.diameter_um);
  if (subject.result() != inference::Subject::Result::images) {
    throw ConfigError(
        subject.first().path +
        ": its results are boxes, or numbers of whole images; expected a model that makes images");
  }
  if (tasks::is_of_whole_images(subject.first().config.at("task")))
    throw ConfigError(subject.first().path +
                      ": it tells something of whole images, which `predict` takes");
  inference::PredictorOptions options;
  options.form = form_;
  options.threshold = threshold_;
  options.temperature = config.predict.temperature_number();
  options.original_grid = inference::keeps_file_grid(subject.first(), config.predict.original_grid);
  for (inference::HeadPredictor& by : inference::predictors_of(subject, own, {}, options)) {
    if (!by.head.empty()) heads_.push_back(by.head);
    predictors_[by.head] = std::make_shared<const inference::Predictor>(std::move(by.predictor));
  }
  pipelines::BatchingOptions batching;
  batching.max_batch_size = config.batching.max_batch_size;
  batching.max_latency = config.batching.max_latency;
  batching.max_queue_size = 2 * config.batching.max_batch_size;
  batching.max_queue_bytes = std::max<int64_t>(available_memory().bytes / 4, 1);
  batching.waits_for_room = true;
  readers_ = std::make_unique<ThreadPool>(kServeThreads);
  finishers_ = std::make_unique<ThreadPool>(kServeThreads);
  batcher_ = std::make_unique<pipelines::Batcher>(
      batching, [this](const pipelines::Batch& batch) { compute(batch); });
  const c10::InferenceMode inference_mode;
  for (const auto& [head, predictor] : predictors_)
    device::guarded([&] { warm_up(predictor->windowed()); });
}

ServedModel::~ServedModel() {
  batcher_->stop();
  readers_.reset();
  finishers_.reset();
}

const inference::Predictor& ServedModel::predictor(const std::string& head) const {
  const auto found = predictors_.find(head.empty() && !heads_.empty() ? heads_.front() : head);
  if (found != predictors_.end()) return *found->second;
  throw HttpError(400,
                  heads_.empty()
                      ? fmt::format("head: the model {} has a single output without a name", name_)
                      : fmt::format("head={}: expected one of {}", head, fmt::join(heads_, ", ")));
}

std::vector<std::string> ServedModel::forms(const std::string& head) const {
  const inference::WindowedModel& windowed = predictor(head).windowed();
  std::vector<std::string> forms{windowed.form};
  for (const std::string& form : windowed.decoder->forms())
    if (form != windowed.form && form != "variance") forms.push_back(form);
  return forms;
}

std::shared_ptr<const PreparedModel> ServedModel::prepared(const AskedResult& asked) {
  const double threshold = asked.threshold.value_or(threshold_);
  const std::string form = asked.form.empty() || asked.form == "auto" ? form_ : asked.form;
  const std::string key = fmt::format("{} {} {}", asked.head, form, threshold);
  const std::lock_guard lock(mutex_);
  if (const auto found = prepared_.find(key); found != prepared_.end()) return found->second;
  const inference::Predictor& usual = predictor(asked.head);
  const bool is_usual = form == form_ && threshold == threshold_;
  try {
    inference::Predictor own = is_usual ? usual : usual.with(form, threshold);
    inference::ResultOptions options{inference::result_steps(own, postprocess_), threshold};
    auto made = std::make_shared<const PreparedModel>(
        PreparedModel{std::move(own), std::move(options), key});
    if (prepared_.size() >= kPreparedModels) prepared_.erase(prepared_.begin());
    return prepared_.emplace(key, std::move(made)).first->second;
  } catch (const ConfigError& error) {
    throw HttpError(400, error.what());
  }
}

void ServedModel::submit(const AskedResult& asked,
                         std::unique_ptr<ImageWork> work,
                         std::shared_ptr<HttpExchange> exchange) {
  const auto job = std::make_shared<Job>(*this, prepared(asked), std::move(work), exchange);
  exchange->on_end([weak = std::weak_ptr<Job>(job), this] {
    const auto own = weak.lock();
    if (!own) return;
    own->is_abandoned = true;
    batcher_->cancel(own);
  });
  readers_->post([this, job] { read(job); });
}

void ServedModel::read(const std::shared_ptr<Job>& job) {
  if (job->is_abandoned || !job->attempt([&] { job->read(); })) return;
  if (job->is_abandoned) return;
  job->attempt([&] { batcher_->submit(job); });
}

void ServedModel::compute(const pipelines::Batch& batch) {
  const c10::InferenceMode inference_mode;
  std::vector<std::shared_ptr<Job>> jobs;
  for (const pipelines::BatchSlice& slice : batch.slices) {
    auto job = std::static_pointer_cast<Job>(slice.request);
    if (!job->is_abandoned) jobs.push_back(std::move(job));
  }
  if (jobs.size() > 1) return compute_together(jobs);
  for (const auto& job : jobs) device::guarded([&] { job->compute(); });
}

/// Images of one size. Where that fails, because of one of them or all, each by itself tells.
void ServedModel::compute_together(const std::vector<std::shared_ptr<Job>>& jobs) {
  std::vector<const inference::ModelInput*> inputs;
  for (const auto& job : jobs) inputs.push_back(job->input.get());
  std::vector<at::Tensor> values(jobs.size());
  try {
    device::guarded([&] {
      const inference::WindowedModel& windowed = jobs[0]->prepared->predictor.windowed();
      windowed.run(
          inputs,
          windowed.windows(*inputs[0]),
          [&](std::size_t i, const at::Tensor& own) {
            if (own.defined()) values[i] = own.cpu();
          },
          [&](int64_t done, int64_t total) {
            check_wanted(std::ranges::all_of(
                jobs, [](const auto& job) { return job->is_abandoned.load(); }));
            const auto images = std::ssize(jobs);
            for (const auto& job : jobs) job->report(done / images, total / images);
          });
    });
  } catch (const std::exception& error) {
    log::debug("{}: {}; each image is predicted by itself", name_, error.what());
  }
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (values[i].defined()) {
      jobs[i]->take(values[i]);
    } else if (!jobs[i]->attempt([&] { jobs[i]->compute(); })) {
      jobs[i]->has_failed = true;
    }
  }
}

}  // namespace cytra::app
