#include "app/benchmark/variant.h"

#include <array>

#include "base/strings.h"
#include "device/precision.h"
#include "inference/engines/engine.h"
#include "perf/measure.h"

namespace cytra::app {

using device::ConvAlgorithm;

std::string Variant::arithmetic() const {
  switch (device::precision_of(precision).compute) {
    case c10::ScalarType::BFloat16:
      return "bf16";
    case c10::ScalarType::Half:
      return "fp16";
    case c10::ScalarType::Double:
      return "fp64";
    default:
      return tf32 ? "tf32" : "fp32";
  }
}

int64_t Variant::bytes_per_value() const {
  return static_cast<int64_t>(c10::elementSize(device::precision_of(precision).compute));
}

std::string Variant::name() const {
  std::vector<std::string> parts;
  const device::Precision types = device::precision_of(precision);
  if (const std::string type = arithmetic(); type != "fp32") {
    const bool is_short = types.compute != c10::ScalarType::Float && type != "fp64";
    parts.push_back(type + (is_short && !types.is_mixed ? "-true" : ""));
  }
  if (channels_last) parts.emplace_back(*channels_last ? "channels_last" : "channels_first");
  if (convolution != ConvAlgorithm::automatic)
    parts.emplace_back(convolution == ConvAlgorithm::direct ? "direct" : "winograd");
  if (engine != "eager") parts.push_back(engine + (compile_mode == "default" ? "" : "-traced"));
  if (fused) parts.emplace_back(*fused ? "fused" : "not_fused");
  if (gradient_checkpointing)
    parts.emplace_back(*gradient_checkpointing ? "checkpointing" : "no_checkpointing");
  return parts.empty() ? "fp32" : join(parts, "+");
}

namespace {

std::vector<Variant> common_variants() {
  std::vector<Variant> all(7);
  all[1].tf32 = true;
  all[2].precision = "bf16-mixed";
  all[3].precision = "16-mixed";
  all[4].channels_last = true;
  all[5].channels_last = false;
  all[6].convolution = ConvAlgorithm::direct;
  return all;
}

/// Adds half precision with channels first: it is channels-last on every device by default, and
/// these variants show what that gains.
void add_half_channels_first(std::vector<Variant>& variants) {
  for (const char* precision : {"bf16-mixed", "16-mixed"}) {
    Variant both;
    both.precision = precision;
    both.channels_last = false;
    variants.push_back(both);
  }
}

}  // namespace

std::vector<Variant> inference_variants() {
  std::vector<Variant> all = common_variants();
  for (const std::string& engine : inference::engine_names()) {
    if (engine == "eager") continue;
    all.emplace_back().engine = engine;
    if (engine != "cudagraph") continue;
    all.push_back(all.back());
    all.back().compile_mode = "max-autotune";
  }
  add_half_channels_first(all);
  return all;
}

std::vector<Variant> training_variants() {
  std::vector<Variant> all = common_variants();
  all.emplace_back().engine = "cudagraph";
  all.emplace_back().fused = true;
  all.emplace_back().fused = false;
  all.emplace_back().gradient_checkpointing = true;
  add_half_channels_first(all);
  return all;
}

std::optional<Variant> best_together(const std::vector<Variant>& variants,
                                     const config::Node& rows) {
  const Variant usual;
  Variant best;
  std::array<double, 4> speedups{1, 1, 1, 1};
  for (const Variant& variant : variants) {
    const config::Node* row = rows.find_direct(variant.name());
    if (row == nullptr || row->get<double>("speedup_low", 0) <= 1) continue;  // noise
    const auto speedup = row->get<double>("speedup");
    if (speedup < perf::kLeastGain) continue;
    const std::array<bool, 4> sets{variant.arithmetic() != usual.arithmetic(),
                                   variant.channels_last.has_value(),
                                   variant.engine != usual.engine,
                                   variant.fused.has_value()};
    if (sets[0] + sets[1] + sets[2] + sets[3] != 1) continue;
    for (std::size_t kind = 0; kind < sets.size(); ++kind) {
      if (!sets[kind] || speedup <= speedups[kind]) continue;
      speedups[kind] = speedup;
      if (kind == 0) {
        best.precision = variant.precision;
        best.tf32 = variant.tf32;
      } else if (kind == 1) {
        best.channels_last = variant.channels_last;
      } else if (kind == 2) {
        best.engine = variant.engine;
        best.compile_mode = variant.compile_mode;
      } else {
        best.fused = variant.fused;
      }
    }
  }
  if (rows.find_direct(best.name()) != nullptr) return std::nullopt;
  return best;
}

}  // namespace cytra::app
