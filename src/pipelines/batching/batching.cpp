#include "pipelines/batching/batching.h"

#include <cmath>

#include <fmt/format.h>

#include "base/error.h"

namespace cytra::pipelines {
namespace {

constexpr double kHistogramBinsPerOctave = 16;

std::string batching_summary(const char* name, const char* help, const BatchHistogram& values) {
  std::string text = fmt::format("# HELP {0} {1}\n# TYPE {0} summary\n", name, help);
  for (const double share : {0.5, 0.95, 0.99})
    text += fmt::format("{}{{quantile=\"{}\"}} {:.6g}\n", name, share, values.quantile(share));
  return text + fmt::format("{0}_sum {1:.9g}\n{0}_count {2}\n", name, values.sum(), values.count());
}

std::string batching_number(const char* name, const char* help, const char* type, int64_t value) {
  return fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n{0} {3}\n", name, help, type, value);
}

}  // namespace

void BatchingOptions::check() const {
  const auto expect = [](bool is_met, const char* name, const char* range, auto value) {
    if (!is_met) throw ConfigError(fmt::format("{}: expected {}, got {}", name, range, value));
  };
  expect(max_batch_size >= 1, "max_batch_size", "at least 1", max_batch_size);
  expect(max_latency >= 0 && max_latency <= 3600, "max_latency", "0 to 3600 s", max_latency);
  expect(max_queue_size >= 1, "max_queue_size", "at least 1", max_queue_size);
  expect(max_queue_bytes >= 1, "max_queue_bytes", "at least 1", max_queue_bytes);
  expect(pad_to >= 0, "pad_to", "at least 0", pad_to);
}

const char* name_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::ok:
      return "ok";
    case Outcome::rejected:
      return "rejected";
    case Outcome::timed_out:
      return "timed_out";
    case Outcome::cancelled:
      return "cancelled";
    case Outcome::failed:
      return "failed";
  }
  return "";
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
  std::string text =
      batching_number("cytra_requests_received_total", "Requests that came.", "counter", received);
  text +=
      batching_number("cytra_requests_open", "Requests that wait or are computed.", "gauge", open);
  text +=
      "# HELP cytra_requests_total Requests by how they ended.\n"
      "# TYPE cytra_requests_total counter\n";
  for (const Outcome outcome :
       {Outcome::ok, Outcome::rejected, Outcome::timed_out, Outcome::cancelled, Outcome::failed})
    text +=
        fmt::format("cytra_requests_total{{outcome=\"{}\"}} {}\n", name_of(outcome), of(outcome));
  text +=
      "# HELP cytra_batch_size Images of a batch.\n"
      "# TYPE cytra_batch_size histogram\n";
  int64_t count = 0, images = 0, limit = 1;
  const auto add_limit = [&] {
    text += fmt::format("cytra_batch_size_bucket{{le=\"{}\"}} {}\n", limit, count);
    limit *= 2;
  };
  for (const auto& [size, times] : batches) {
    while (size > limit) add_limit();
    count += times;
    images += size * times;
  }
  add_limit();
  text += fmt::format(
      "cytra_batch_size_bucket{{le=\"+Inf\"}} {0}\ncytra_batch_size_sum {1}\n"
      "cytra_batch_size_count {0}\n",
      count,
      images);
  text += batching_summary(
      "cytra_request_queue_seconds", "From a request's arrival to its computing.", queue_s);
  text += batching_summary("cytra_batch_compute_seconds", "Of the model on a batch.", compute_s);
  text +=
      batching_summary("cytra_request_seconds", "From a request's arrival to its answer.", total_s);
  return text + batching_number("cytra_padded_values_total",
                                "Values of images that were filled in.",
                                "counter",
                                padded_values);
}

}  // namespace cytra::pipelines
