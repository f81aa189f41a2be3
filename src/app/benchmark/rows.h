#pragma once
// Rows of a report: what each variant takes, and what could not be measured.
#include <optional>
#include <string>
#include <vector>

#include "app/benchmark/subject.h"
#include "nn/flop_counter.h"
#include "perf/machine_load.h"
#include "perf/roofline.h"

namespace cytra::app {

/// What the device can do, by Variant::arithmetic(), and what an image asks of it.
struct Costs {
  perf::Roofline roofline;
  nn::Flops image;  // no FLOPs: they are not known
  /// The first variant stays prepared while the others are measured; on a GPU it would take memory
  /// from them.
  bool keeps_first = false;
};

config::Node node_of(const perf::Roofline& roofline);
/// What others did meanwhile: `others` and `is_busy`; null where the system does not tell.
config::Node node_of(const perf::MachineLoad& load);

/// A map from each variant's name to its row: `median_ms`, `images_per_s`, `max_difference` against
/// the first usual variant, `speedup` with the range `speedup_low` to `speedup_high`, ... The first
/// variant is measured again behind each other one, and a speedup is against both its times, so
/// that a machine that slows down shows in the range; where both times lie apart beyond the noise,
/// one warning says so. A variant that takes more than four times the first one's time is run three
/// times only. Or `error` (why there are no figures) and
/// `is_out_of_memory`. After all of them, with `together`, best_together(). Throws: what `work`
/// throws, but for memory that ran out, and for an option (not the first) that does not work here.
config::Node measure_rows(std::vector<Variant> variants,
                          bool together,
                          int64_t batch,
                          const perf::Repeats& repeats,
                          const Costs& costs,
                          const Work& work);

}  // namespace cytra::app
