#include "app/benchmark/rows.h"

#include <algorithm>
#include <utility>

#include <ATen/ATen.h>
#include <c10/util/Exception.h>

#include "base/error.h"
#include "base/log.h"
#include "base/strings.h"
#include "device/error.h"

namespace cytra::app {
namespace {

using config::Node;

/// The reason in an error's message: "CUDA graphs need a GPU" in "performance.backend=cudagraph:
/// CUDA graphs need a GPU; use ...".
std::string reason_of(const std::exception& error) {
  const auto* torchs = dynamic_cast<const c10::Error*>(&error);
  std::string text = torchs != nullptr ? torchs->what_without_backtrace() : error.what();
  text = split(text, '\n').front();
  if (text.starts_with("performance.backend=")) text = text.substr(text.find(": ") + 2);
  return text.substr(0, text.find("; use performance.backend=auto"));
}

/// Where the median lies; of few runs, where all of them lie.
std::pair<double, double> range_of(const perf::Times& times) {
  return times.interval().value_or(std::make_pair(times.ms.front(), times.ms.back()));
}

double difference(const std::vector<at::Tensor>& made, const std::vector<at::Tensor>& expected) {
  double largest = 0;
  for (std::size_t i = 0; i < std::min(made.size(), expected.size()); ++i) {
    const double one = (made[i] - expected[i]).abs().max().item<double>();
    if (!(one <= largest)) largest = one;  // NaN is the largest
  }
  return largest;
}

Node row_of(const Measured& measured,
            const Variant& variant,
            int64_t batch,
            const Costs& costs,
            const std::vector<at::Tensor>& expected) {
  const perf::Times& times = measured.times;
  const double rate = 1e3 * static_cast<double>(batch) / times.median();
  Node row = Node::make_map();
  row.set("median_ms", Node::make_real(times.median()));
  const auto interval = times.interval();
  row.set("median_low_ms", interval ? Node::make_real(interval->first) : Node());
  row.set("median_high_ms", interval ? Node::make_real(interval->second) : Node());
  row.set("p95_ms", Node::make_real(times.at_share(0.95)));
  row.set("min_ms", Node::make_real(times.ms.front()));
  row.set("max_ms", Node::make_real(times.ms.back()));
  row.set("cpu_ms", Node::make_real(times.cpu_ms));
  row.set("images_per_s", Node::make_real(rate));
  row.set("peak_memory_mb", Node::make_real(static_cast<double>(measured.peak_bytes) / 1e6));
  row.set("max_difference",
          expected.empty() ? Node() : Node::make_real(difference(measured.results, expected)));
  row.set("arithmetic", Node::make_string(variant.arithmetic()));
  if (costs.image.forward == 0) return row;
  const auto flops = static_cast<double>(costs.image.forward + costs.image.backward);
  row.set("flops_per_image", Node::make_real(flops));
  row.set("flops_per_s", Node::make_real(rate * flops));
  // A gradient's product reads and writes as much as the forward pass' product.
  const auto bytes = static_cast<double>(costs.image.values * variant.bytes_per_value());
  row.set("flops_per_byte", Node::make_real(static_cast<double>(costs.image.forward) / bytes));
  const auto peak = costs.roofline.flops_per_s.find(variant.arithmetic());
  if (peak != costs.roofline.flops_per_s.end())
    row.set("share_of_peak", Node::make_real(rate * flops / peak->second));
  return row;
}

Node error_row(const std::string& reason, bool is_out_of_memory) {
  Node row = Node::make_map();
  row.set("error", Node::make_string(reason));
  row.set("is_out_of_memory", Node::make_boolean(is_out_of_memory));
  return row;
}

bool is_of_memory(const std::exception& error) {
  return device::is_out_of_memory(error) || dynamic_cast<const MemoryError*>(&error) != nullptr;
}

class Rows {
 public:
  Rows(int64_t batch, const perf::Repeats& repeats, const Costs& costs, const Prepare& prepare)
      : batch_(batch), repeats_(repeats), costs_(costs), prepare_(prepare) {}

  /// Takes the results that other variants' results are compared with, where the usual variant
  /// gets no row of its own.
  void expect(const Variant& usual) {
    try {
      expected_ = prepare_(usual, batch_)({0, 1}).results;
    } catch (const std::exception& error) {
      if (!is_of_memory(error)) throw;
      log::debug("nothing to compare with: {}", reason_of(error));
    }
  }

  void add(const Variant& variant) {
    const std::string name = variant.name();
    try {
      const Ready ready = prepare_(variant, batch_);
      Measured measured = run(ready);
      if (variant.is_usual() && expected_.empty()) expected_ = std::move(measured.results);
      Node row = row_of(measured, variant, batch_, costs_, expected_);
      if (variant.is_usual()) row.set("max_difference", Node::make_real(0));
      if (rows.map.empty()) {
        first_ = variant;
        if (costs_.keeps_first) kept_ = ready;
        before_ = measured.times;
        row.set("speedup", Node::make_real(1));
      } else {
        compare(measured.times, row);
      }
      rows.set(name, row);
    } catch (const std::exception& error) {
      const bool is_out_of_memory = is_of_memory(error);
      const bool is_of_option = dynamic_cast<const c10::Error*>(&error) != nullptr ||
                                dynamic_cast<const ConfigError*>(&error) != nullptr;
      if (!is_out_of_memory && (rows.map.empty() || !is_of_option)) throw;
      rows.set(name,
               error_row(is_out_of_memory ? "out of memory" : reason_of(error), is_out_of_memory));
    }
  }

  Node rows = Node::make_map();

 private:
  /// Runs a trial first, which is the warm-up as well; it shows whether all runs are worth the
  /// time.
  Measured run(const Ready& ready) const {
    constexpr double kHopeless = 4;
    const perf::Repeats trial{1, 1}, few{0, 3};
    const int64_t warm = trial.warmup + trial.timed;
    if (!before_ || repeats_.warmup < warm || repeats_.timed <= few.timed) return ready(repeats_);
    const double most_ms = kHopeless * before_->median();
    int64_t left = repeats_.warmup - warm;
    if (ready(trial).times.median() > most_ms) {
      Measured measured = ready(few);
      if (measured.times.ms.front() > most_ms) return measured;
      left = 0;  // other programs used the processor meanwhile
    }
    return ready({left, repeats_.timed});
  }

  /// Compares times with those of the first variant, which is measured before and after them.
  void compare(const perf::Times& times, Node& row) {
    if (!before_) {
      row.set("speedup", Node());
      return;
    }
    perf::Times behind = *before_;
    try {
      behind = kept_ ? kept_({std::min<int64_t>(repeats_.warmup, 1), repeats_.timed}).times
                     : prepare_(first_, batch_)(repeats_).times;
    } catch (const std::exception& error) {
      if (!is_of_memory(error)) throw;
    }
    const auto was = range_of(*before_), is = range_of(behind), own = range_of(times);
    row.set("speedup", Node::make_real((before_->median() + behind.median()) / 2 / times.median()));
    row.set("speedup_low", Node::make_real(std::min(was.first, is.first) / own.second));
    row.set("speedup_high", Node::make_real(std::max(was.second, is.second) / own.first));
    if ((was.second < is.first || is.second < was.first) && !std::exchange(has_warned_, true)) {
      log::warn(
          "{} took {:.3g} ms, and {:.3g} ms when it was measured again: the machine's speed "
          "changes, so speedups are less certain",
          first_.name(),
          before_->median(),
          behind.median());
    }
    before_ = std::move(behind);
  }

  int64_t batch_;
  const perf::Repeats& repeats_;
  const Costs& costs_;
  const Prepare& prepare_;
  std::vector<at::Tensor> expected_;
  Variant first_;
  Ready kept_;  // first_
  std::optional<perf::Times>
      before_;  // of the first variant, measured last; none: it has no figures
  bool has_warned_ = false;
};

}  // namespace

Node node_of(const perf::Roofline& roofline) {
  Node node = Node::make_map();
  Node& peaks = node.set("product_flops_per_s", Node::make_map());
  for (const auto& [name, peak] : roofline.flops_per_s) peaks.set(name, Node::make_real(peak));
  node.set("copy_bytes_per_s", Node::make_real(roofline.bytes_per_s));
  return node;
}

Node node_of(const perf::MachineLoad& load) {
  const double others = load.others();
  Node node = Node::make_map();
  node.set("others", others < 0 ? Node() : Node::make_real(others));
  node.set("is_busy", Node::make_boolean(load.is_busy()));
  return node;
}

Node measure_rows(std::vector<Variant> variants,
                  bool together,
                  int64_t batch,
                  const perf::Repeats& repeats,
                  const Costs& costs,
                  const Prepare& prepare) {
  Rows all(batch, repeats, costs, prepare);
  if (!variants.at(0).is_usual()) all.expect({});
  for (const Variant& variant : variants) all.add(variant);
  if (!together) return all.rows;
  if (const auto best = best_together(variants, all.rows)) all.add(*best);
  return all.rows;
}

}  // namespace cytra::app
