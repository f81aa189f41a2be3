#pragma once
// A model that answers requests in batches: latency by load, and throughput compared with batches
// that are complete from the beginning.
#include <cstdint>
#include <string>
#include <vector>

#include "app/benchmark/workload.h"

namespace cytra::app {

struct ServiceLoads {
  int64_t max_batch_size = 32;
  double seconds = 5;  // that each load lasts; at least 20 requests
  std::vector<int64_t> percents = {10, 30, 50, 70, 80, 90, 100, 110, 120};  // of the capacity
};

/// The times at which `count` requests of one image arrive, in seconds from the beginning: `rate`
/// per second on average, independent of each other (a Poisson process). Equal seeds give equal
/// times.
std::vector<double> poisson_arrivals(int64_t count, double rate, uint64_t seed);

/// The part `service` of a report: `batches` (images/s by batch size), `full_batch`,
/// `offline_images_per_s` (in full batches, without waiting: the capacity), `saturated` (as many
/// requests as there is room for) and `loads` by percent. A load: `offered_per_s`,
/// `answered_per_s`, `p50_ms`, `p95_ms`, `p99_ms`, `max_ms` from the planned time of a request to
/// its answer, `histogram_ms` (upper ends and counts), `mean_batch`, `requests`, `rejected`.
config::Node measure_service(const Workload& workload,
                             const Variant& variant,
                             const ServiceLoads& loads);

/// The part `service` of a report as a table for a terminal.
std::string service_table(const config::Node& service);

}  // namespace cytra::app
