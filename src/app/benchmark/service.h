#pragma once
// A model that answers requests in batches: latency by load, and throughput against batches that
// are there from the beginning.
#include <cstdint>
#include <string>
#include <vector>

#include "app/benchmark/subject.h"

namespace cytra::app {

struct ServiceLoads {
  int64_t max_batch_size = 32;
  double seconds = 5;  // that each load lasts; at least 20 requests
  std::vector<int64_t> percents = {10, 30, 50, 70, 80, 90, 100, 110, 120};  // of the capacity
};

/// When `count` requests of one image come, in seconds from the begin: `rate` a second in the mean,
/// one by one and independent of each other (a Poisson process). The same for the same seed.
std::vector<double> poisson_arrivals(int64_t count, double rate, uint64_t seed);

/// What a report has as `service`: `batches` (images/s by batch size), `full_batch`,
/// `offline_images_per_s` (in full batches, nobody waits: the capacity), `saturated` (as many
/// requests as there is room for) and `loads` by percent. A load: `offered_per_s`,
/// `answered_per_s`, `p50_ms`, `p95_ms`, `p99_ms`, `max_ms` from the moment a request was to come
/// to its answer, `histogram_ms` (upper ends and counts), `mean_batch`, `requests`, `rejected`.
config::Node measure_service(const Subject& subject,
                             const Variant& variant,
                             const ServiceLoads& loads);

/// For a terminal.
std::string service_table(const config::Node& service);

}  // namespace cytra::app
