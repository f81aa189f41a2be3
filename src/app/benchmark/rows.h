#pragma once
// Rows of a report: the time and memory of each variant, and why some could not be measured.
#include <vector>

#include "app/benchmark/workload.h"
#include "nn/flop_counter.h"
#include "perf/machine_load.h"
#include "perf/roofline.h"

namespace cytra::app {

/// The device's peaks by Variant::arithmetic(), and the work that an image needs.
struct Costs {
  perf::Roofline roofline;
  nn::Flops image;  // no FLOPs: unknown
  /// The first variant stays prepared while the others are measured; on a GPU it would take memory
  /// from them.
  bool keeps_first = false;
};

config::Node node_of(const perf::Roofline& roofline);
/// The load by other programs meanwhile: `others` and `is_busy`; null where the system does not
/// report it.
config::Node node_of(const perf::MachineLoad& load);

/// A map from each variant's name to its row: `median_ms`, `images_per_s`, `max_difference`
/// against the first usual variant, `speedup` with the range `speedup_low` to `speedup_high`, ...
/// The first variant is measured again after each other one, and a speedup is computed from both
/// times, so that a machine that slows down widens the range; where the two times differ beyond
/// the noise, one warning says so. A variant that takes more than four times the first one's time
/// is run three times only. A row without figures has `error` (the reason) and `is_out_of_memory`.
/// With `together`, best_together() is measured last. Throws: what `prepare` throws, except where
/// memory runs out, or where an option (not the first) does not work here.
config::Node measure_rows(std::vector<Variant> variants,
                          bool together,
                          int64_t batch,
                          const perf::Repeats& repeats,
                          const Costs& costs,
                          const Prepare& prepare);

}  // namespace cytra::app
