#include "pipelines/batching/batching.h"

#include <array>
#include <cmath>

#include <fmt/format.h>

#include "base/error.h"
#include "base/prometheus_text.h"

namespace cytra::pipelines {
namespace {

constexpr double kHistogramBinsPerOctave = 16;

void add_summary(const char* name,
                 const char* help,
                 const BatchHistogram& values,
                 PrometheusText& text) {
  text.metric(name, help, "summary");
  for (const double share : {0.5, 0.95, 0.99})
    text.sample(values.quantile(share), {{"quantile", fmt::to_string(share)}});
  text.sample(values.sum(), {}, "_sum").sample(static_cast<double>(values.count()), {}, "_count");
}

}  // namespace

void BatchingOptions::check() const {
  const auto expect = [](bool is_met, const char* name, const char* range, auto value) {
    if (!is_met) throw ConfigError("{}: expected {}, got {}", name, range, value);
  };
  expect(max_batch_size >= 1, "max_batch_size", "at least 1", max_batch_size);
  expect(max_latency >= 0 && max_latency <= 3600, "max_latency", "0 to 3600 s", max_latency);
  expect(max_queue_size >= 1, "max_queue_size", "at least 1", max_queue_size);
  expect(max_queue_bytes >= 1, "max_queue_bytes", "at least 1", max_queue_bytes);
  expect(pad_to >= 0, "pad_to", "at least 0", pad_to);
}

const char* name_of(Outcome outcome) {
  constexpr std::array kNames{"ok", "rejected", "timed_out", "cancelled", "failed"};
  return kNames.at(static_cast<std::size_t>(outcome));
}

void BatchHistogram::add(double value) {
  const double octave = std::log2(std::fmax(value, 1e-9));
  bins_[static_cast<int>(std::floor(octave * kHistogramBinsPerOctave))] += 1;
  count_ += 1;
  sum_ += value;
}

double BatchHistogram::quantile(double share) const {
  const auto rank = static_cast<int64_t>(std::ceil(share * static_cast<double>(count_)));
  int64_t below = 0;
  for (const auto& [bin, values] : bins_) {
    below += values;
    if (below >= rank) return std::exp2((bin + 0.5) / kHistogramBinsPerOctave);
  }
  return 0;
}

int64_t BatchingFigures::of(Outcome outcome) const {
  const auto found = outcomes.find(outcome);
  return found == outcomes.end() ? 0 : found->second;
}

double BatchingFigures::mean_batch() const {
  int64_t images = 0, count = 0;
  for (const auto& [size, times] : batches) {
    images += size * times;
    count += times;
  }
  return count == 0 ? 0 : static_cast<double>(images) / static_cast<double>(count);
}

std::string BatchingFigures::prometheus() const {
  PrometheusText text;
  const auto number = [&](const char* name, const char* help, const char* type, int64_t value) {
    text.metric(name, help, type).sample(static_cast<double>(value));
  };
  number("cytra_requests_received_total", "Requests that came.", "counter", received);
  number("cytra_requests_open", "Requests that wait or are computed.", "gauge", open);
  text.metric("cytra_requests_total", "Requests by how they ended.", "counter");
  for (const Outcome outcome :
       {Outcome::ok, Outcome::rejected, Outcome::timed_out, Outcome::cancelled, Outcome::failed})
    text.sample(static_cast<double>(of(outcome)), {{"outcome", name_of(outcome)}});
  text.metric("cytra_batch_size", "Images of a batch.", "histogram");
  int64_t count = 0, images = 0, limit = 1;
  const auto add_limit = [&] {
    text.sample(static_cast<double>(count), {{"le", std::to_string(limit)}}, "_bucket");
    limit *= 2;
  };
  for (const auto& [size, times] : batches) {
    while (size > limit) add_limit();
    count += times;
    images += size * times;
  }
  add_limit();
  text.sample(static_cast<double>(count), {{"le", "+Inf"}}, "_bucket")
      .sample(static_cast<double>(images), {}, "_sum")
      .sample(static_cast<double>(count), {}, "_count");
  add_summary(
      "cytra_request_queue_seconds", "From a request's arrival to its computing.", queue_s, text);
  add_summary("cytra_batch_compute_seconds", "Of the model on a batch.", compute_s, text);
  add_summary("cytra_request_seconds", "From a request's arrival to its answer.", total_s, text);
  number("cytra_padded_values_total",
         "Values of images that were filled in.",
         "counter",
         padded_values);
  return text.text();
}

}  // namespace cytra::pipelines
