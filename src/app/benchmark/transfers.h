#pragma once
// What the copies to and from a device take beside the model's pass.
#include <string>

#include "app/benchmark/workload.h"

namespace cytra::app {

/// The part `transfers` of a report: for a batch's images (`to_device`) and outputs (`to_host`),
/// `bytes`, and the median times of a copy from and to page-locked (`pinned_ms`) and other memory
/// (`pageable_ms`). Null where the device computes in the host's memory.
config::Node measure_transfers(const Workload& workload,
                               int64_t batch,
                               const perf::Repeats& repeats);

/// The part `transfers` of a report as a table for a terminal; "" where it has none.
std::string transfer_table(const config::Node& report);

}  // namespace cytra::app
