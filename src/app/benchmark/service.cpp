#include "app/benchmark/service.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>
#include <thread>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include "base/log.h"
#include "base/queue.h"
#include "base/table.h"
#include "device/device.h"
#include "device/precision.h"
#include "nn/model.h"
#include "pipelines/batching/batching_service.h"

namespace cytra::app {
namespace {

using config::Node;
using pipelines::BatchClock;
using pipelines::BatchingFigures;
using pipelines::BatchingService;
using pipelines::BatchTime;

constexpr int64_t kFewestRequests = 20;

double service_seconds(BatchTime begin) {
  return std::chrono::duration<double>(BatchClock::now() - begin).count();
}

Node service_count(int64_t value) {
  return Node::make_integer(value);
}

BatchingService::Model service_model(const Workload& workload, const Variant& variant) {
  const Node config = prepared(workload, variant);
  const std::shared_ptr<nn::Model> model = make_model(workload, config.at("task.model"), variant);
  const device::Precision precision = device::precision_of(variant.precision);
  if (precision.parameters != at::kFloat) nn::cast(*model, precision.parameters);
  return [model, precision, device = workload.device](const at::Tensor& images) {
    const device::Autocast autocast(precision, device.type());
    const at::Tensor answer = model->all(images.to(precision.parameters))[0];
    device::synchronize(device);  // a request is answered when its values are there
    return answer;
  };
}

struct ServiceAnswers {
  std::vector<double> ms;  // of requests that were answered, sorted
  double seconds = 0;      // from the first arrival to the last answer
  int64_t rejected = 0;
};

/// Sends a request of `image` at each of these times. The latency counts from that time, not from
/// submit(): a sender that is late hides nothing. About `open` requests at most wait for answers.
ServiceAnswers ask_service(BatchingService& service,
                           const at::Tensor& image,
                           const std::vector<double>& arrivals,
                           std::size_t open) {
  using Sent = std::pair<BatchTime, BatchingService::Request>;
  Queue<Sent> sent(open);
  ServiceAnswers answers;
  const BatchTime begin = BatchClock::now();
  std::exception_ptr error;
  std::thread receiver([&] {
    try {
      while (std::optional<Sent> one = sent.pop()) {  // answers come in the order of requests
        one->second.answer.get();
        answers.ms.push_back(1e3 * service_seconds(one->first));
      }
    } catch (...) {
      error = std::current_exception();
      sent.close();
    }
  });
  for (const double arrival : arrivals) {
    const BatchTime time = begin + std::chrono::duration_cast<BatchClock::duration>(
                                       std::chrono::duration<double>(arrival));
    std::this_thread::sleep_until(time);
    try {
      sent.push({arrival == 0 ? BatchClock::now() : time, service.submit(image)});
    } catch (const pipelines::RequestError&) {
      ++answers.rejected;
    }
  }
  sent.close();
  receiver.join();
  if (error) std::rethrow_exception(error);
  answers.seconds = service_seconds(begin);
  std::ranges::sort(answers.ms);
  return answers;
}

Node service_row(const ServiceAnswers& answers,
                 double offered_per_s,
                 const BatchingFigures& figures) {
  perf::Times times;
  times.ms = answers.ms;
  const auto answered = std::ssize(answers.ms);
  Node row = Node::make_map();
  row.set("offered_per_s", offered_per_s > 0 ? Node::make_real(offered_per_s) : Node());
  row.set("answered_per_s", Node::make_real(static_cast<double>(answered) / answers.seconds));
  row.set("requests", service_count(answered + answers.rejected));
  row.set("rejected", service_count(answers.rejected));
  row.set("mean_batch", Node::make_real(figures.mean_batch()));
  if (answered == 0) return row;
  row.set("p50_ms", Node::make_real(times.at_share(0.5)));
  row.set("p95_ms", Node::make_real(times.at_share(0.95)));
  row.set("p99_ms", Node::make_real(times.at_share(0.99)));
  row.set("max_ms", Node::make_real(times.ms.back()));
  Node& histogram = row.set("histogram_ms", Node::make_map());
  auto from = times.ms.begin();
  for (double end = 1; from != times.ms.end(); end *= 2) {
    const auto to = std::upper_bound(from, times.ms.end(), end);
    if (to != from) histogram.set(fmt::format("{}", end), service_count(to - from));
    from = to;
  }
  return row;
}

/// Images/s when all images of a batch are there at once: the median of ten runs.
double offline_rate(const BatchingService::Model& model, const Workload& workload, int64_t batch) {
  const at::NoGradGuard no_grad;
  const at::Tensor images = at::randn(workload.shape_of(batch)).to(workload.device);
  const perf::Times times = perf::measure([&] { model(images); }, {2, 10}, workload.device);
  return 1e3 * static_cast<double>(batch) / times.median();
}

}  // namespace

std::vector<double> poisson_arrivals(int64_t count, double rate, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<double> times;
  double time = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double uniform = std::ldexp(static_cast<double>(random() >> 11), -53);  // [0, 1)
    times.push_back(time += -std::log1p(-uniform) / rate);
  }
  return times;
}

Node measure_service(const Workload& workload, const Variant& variant, const ServiceLoads& loads) {
  const BatchingService::Model model = service_model(workload, variant);
  const std::vector<int64_t> shape{workload.shape.begin() + 1, workload.shape.end()};
  at::manual_seed(0);
  const at::Tensor image = at::randn(workload.shape_of(1)).to(workload.device);
  pipelines::BatchingOptions options;
  options.max_batch_size = loads.max_batch_size;
  BatchingService service(model, options);
  const std::map<int64_t, double> seconds = service.warm_up(shape, image.options());
  const int64_t full = service.full_size(shape, image.options());
  const double capacity = offline_rate(model, workload, full);
  const auto count_of = [&](double rate) {
    return std::max<int64_t>(kFewestRequests, std::llround(rate * loads.seconds));
  };
  const auto measure_load = [&](const std::vector<double>& arrivals, double offered, int64_t open) {
    const BatchingFigures before = service.figures();
    const ServiceAnswers answers =
        ask_service(service, image, arrivals, static_cast<std::size_t>(open));
    BatchingFigures figures = service.figures();
    for (const auto& [size, count] : before.batches) figures.batches[size] -= count;
    return service_row(answers, offered, figures);
  };
  Node section = Node::make_map();
  Node batches = Node::make_map();
  for (const auto& [size, time] : seconds)
    batches.set(std::to_string(size), Node::make_real(static_cast<double>(size) / time));
  section.set("batches", batches);
  section.set("full_batch", service_count(full));
  section.set("offline_images_per_s", Node::make_real(capacity));
  const std::vector<double> at_once(static_cast<std::size_t>(count_of(capacity)), 0.0);
  section.set("saturated", measure_load(at_once, 0, std::min<int64_t>(4 * full, 512)));
  Node rows = Node::make_map();
  for (const int64_t percent : loads.percents) {
    const double rate = 0.01 * static_cast<double>(percent) * capacity;
    log::info("service: {} % of {:.1f} images/s", percent, capacity);
    const std::vector<double> arrivals = poisson_arrivals(count_of(rate), rate, 1);
    rows.set(std::to_string(percent), measure_load(arrivals, rate, count_of(rate) + 1));
  }
  section.set("loads", rows);
  return section;
}

std::string service_table(const Node& service) {
  std::vector<std::vector<std::string>> lines{{"load  service",
                                               "offered/s",
                                               "answered/s",
                                               "p50 ms",
                                               "p95 ms",
                                               "p99 ms",
                                               "batch",
                                               "rejected"}};
  const auto add = [&](const std::string& name, const Node& row) {
    const auto number = [&](const char* key) {
      const Node* const value = row.find_direct(key);
      return value == nullptr || value->is_null() ? "" : fmt::format("{:.2f}", value->as<double>());
    };
    lines.push_back({name,
                     number("offered_per_s"),
                     number("answered_per_s"),
                     number("p50_ms"),
                     number("p95_ms"),
                     number("p99_ms"),
                     number("mean_batch"),
                     std::to_string(row.get<int64_t>("rejected"))});
  };
  for (const auto& [percent, row] : service.at("loads").map) add(percent + " %", row);
  add("saturated", service.at("saturated"));
  const auto offline = service.get<double>("offline_images_per_s");
  return format_table(lines) +
         fmt::format(
             "offline, in batches of {}: {:.2f} images/s; the service, saturated: {:.0f} % of "
             "that\n",
             service.get<int64_t>("full_batch"),
             offline,
             100 * service.at("saturated").get<double>("answered_per_s") / offline);
}

}  // namespace cytra::app
