// One choice: which engine runs a model, and the check that it agrees with PyTorch.
#include "inference/engines/engine.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>

#include "base/error.h"
#include "base/foreign_call.h"
#include "base/log.h"
#include "base/strings.h"
#include "base/warn_once.h"
#include "device/backend.h"
#include "device/error.h"
#include "inference/engines/entry.h"
#include "inference/isolated.h"

namespace cytra::inference {
namespace {

/// The allowed difference of an engine from eager float32: rms of the difference, as a share of
/// the values'.
double bound_of(const EngineOptions& options, c10::Device device) {
  constexpr double kTenBits = 0.01;  // the fraction of float16 and TF32 has 10 bits
  if (options.quantization != "none") return 0.2;
  switch (precision_of(options).compute) {
    case at::kBFloat16:
      return 0.05;
    case at::kHalf:
      return kTenBits;
    default:
      return device::backend_of(device).tf32().convolutions ? kTenBits : 5e-4;
  }
}

/// Compares the results of an engine for some windows with eager float32 of the first of them.
/// Throws: EngineUnfit beyond the bound. Returns the difference for the log.
std::string compare(const std::vector<Tensor>& made,
                    const std::vector<Tensor>& expected,
                    double bound) {
  if (made.size() != expected.size()) {
    throw EngineUnfit(fmt::format("it gives {} outputs, eager {}", made.size(), expected.size()),
                      false);
  }
  std::string worst;
  double worst_share = -1;
  for (std::size_t i = 0; i < made.size(); ++i) {
    if (made[i].sizes().slice(1) != expected[i].sizes().slice(1))
      throw EngineUnfit("its outputs have other shapes than eager's", false);
    const at::Tensor values = expected[i].to(at::kDouble);
    const at::Tensor off = made[i].narrow(0, 0, 1).to(at::kDouble) - values;
    const double rms = off.square().mean().sqrt().item<double>();
    const double span = values.square().mean().sqrt().item<double>();
    const bool both_fail = !std::isfinite(span);  // NaN in, NaN out: reported where the result is
                                                  // read
    const double share = both_fail || rms == 0 ? 0 : rms / std::max(span, 1e-6);
    if (!(share <= worst_share)) {
      worst_share = share;
      worst = fmt::format("differs from eager float32 by {:.1e} rms, {:.1e} at most, of {:.3g}",
                          rms,
                          off.abs().max().item<double>(),
                          values.abs().max().item<double>());
    }
  }
  if (!(worst_share <= bound)) {
    throw EngineUnfit(fmt::format("it {}; {:.2g} of the values' rms is allowed", worst, bound),
                      false);
  }
  return worst;
}

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

/// Whether another engine may succeed where this one failed.
bool is_of_engine(const std::exception& error) {
  return !device::is_out_of_memory(error) && dynamic_cast<const Error*>(&error) == nullptr;
}

struct Checked {
  std::shared_ptr<FixedEngine> engine;
  std::string report;
};

/// Runs windows twice, and warns where that differs: nobody but its author knows whether a network
/// of others draws random numbers.
void compare_with_itself(FixedEngine& engine, const EngineModel& model, const Tensor& windows) {
  const std::vector<Tensor> once = engine.run(windows), again = engine.run(windows);
  for (std::size_t i = 0; i < once.size(); ++i) {
    const double off = (once[i] - again[i]).abs().max().item<double>(),
                 most = once[i].abs().max().item<double>();
    if (!(off > 1e-3 * most)) continue;
    warn_once(
        fmt::format("{}: two runs of the same window differ by {:.2g} of {:.2g}: the network draws "
                    "random numbers, as dropouts in training mode do, so no two predictions are "
                    "alike; export it after eval()",
                    model.name,
                    off,
                    most));
    return;
  }
}

/// Makes an engine for the example's shape, and checks that it returns eager's values. Throws:
/// what EngineEntry::make throws.
Checked make_checked(const EngineEntry& entry,
                     const EngineModel& model,
                     const EngineOptions& options,
                     const Tensor& example) {
  Checked checked{entry.make(model, options, example), "compared with eager when it was kept"};
  const Tensor first = example.narrow(0, 0, 1);
  const Tensor& windows = checked.engine->count() == 0 ? first : example;
  if (model.torchscript || model.onnx) compare_with_itself(*checked.engine, model, windows);
  if (checked.engine->was_accepted()) return checked;
  const std::vector<Tensor> expected = forward_with(model, {}, first);
  checked.report =
      compare(checked.engine->run(windows), expected, bound_of(options, windows.device()));
  checked.engine->accept();
  return checked;
}

/// Keeps engines by the windows' shape. It is not worth preparing an engine for a rare shape.
class EnginePool final : public Engine {
 public:
  EnginePool(const EngineEntry& entry,
             EngineModel model,
             EngineOptions options,
             const Tensor& example,
             std::shared_ptr<FixedEngine> first)
      : entry_(entry),
        model_(std::move(model)),
        options_(std::move(options)),
        text_(first->text()) {
    if (first->takes_any_size()) {
      for_all_ = std::move(first);
    } else {
      engines_[shape_of(example)] = {0, ++clock_, true, std::move(first)};
    }
  }

  std::vector<Tensor> run(const Tensor& windows) override {
    const c10::InferenceMode inference_mode;
    std::optional<ForeignCall> call;
    if (model_.torchscript) call.emplace();
    const std::shared_ptr<FixedEngine> engine = for_all_ != nullptr ? for_all_ : find(windows);
    if (engine == nullptr) return forward_with(model_, precision_of(options_), windows);
    try {
      return run_on(*engine, windows);
    } catch (const std::exception& error) {
      // Fewer windows will come: they get an engine of their own, as this one pads them.
      if (for_all_ == nullptr && device::is_out_of_memory(error)) forget(windows);
      throw;
    }
  }

  std::string text() const override { return text_; }

 private:
  static std::vector<Tensor> run_on(FixedEngine& engine, const Tensor& windows) {
    const int64_t count = windows.size(0), full = engine.count();
    if (full == 0 || count == full) return engine.run(windows);
    if (count > full) return run_parts(engine, windows, full);
    std::vector<int64_t> more = windows.sizes().vec();
    more[0] = full - count;
    std::vector<Tensor> outputs =
        engine.run(at::cat({windows, windows.narrow(0, count - 1, 1).expand(more)}));
    for (Tensor& output : outputs) output = output.narrow(0, 0, count);
    return outputs;
  }

  void forget(const Tensor& windows) {
    const std::lock_guard lock(mutex_);
    engines_.erase(shape_of(windows));
  }

  static constexpr int kPassesBefore = 2;  // passes of a new shape that are run by eager
  static constexpr std::size_t kMost = 4;  // engines, each with weights of its own

  using Shape = std::vector<int64_t>;
  struct ShapeEngine {
    int passes = 0;
    int64_t used = 0;         // when, by clock_
    bool is_decided = false;  // there is an engine, one is being made, or none can be
    std::shared_ptr<FixedEngine> engine;
  };
  static Shape shape_of(const Tensor& windows) { return windows.sizes().slice(1).vec(); }

  /// The engine for such windows; null: eager.
  std::shared_ptr<FixedEngine> find(const Tensor& windows) {
    const Shape shape = shape_of(windows);
    {
      const std::lock_guard lock(mutex_);
      ShapeEngine& place = engines_[shape];
      place.used = ++clock_;
      if (place.is_decided || ++place.passes <= kPassesBefore) return place.engine;
      place.is_decided = true;
    }
    std::shared_ptr<FixedEngine> made;
    try {
      made = make_checked(entry_, model_, options_, windows).engine;
    } catch (const std::exception& error) {
      if (device::is_out_of_memory(error)) forget(windows);
      if (!is_of_engine(error)) throw;
      log::debug("engine: eager for windows of another size: {}", first_line(error.what()));
    }
    const std::lock_guard lock(mutex_);
    engines_[shape] = {0, clock_, true, made};
    drop_oldest();
    return made;
  }

  void drop_oldest() {
    auto oldest = engines_.end();
    std::size_t engines = 0;
    for (auto place = engines_.begin(); place != engines_.end(); ++place) {
      if (place->second.engine == nullptr) continue;
      ++engines;
      if (oldest == engines_.end() || place->second.used < oldest->second.used) oldest = place;
    }
    if (engines > kMost) engines_.erase(oldest);
  }

  static std::vector<Tensor> run_parts(FixedEngine& engine, const Tensor& windows, int64_t full) {
    std::vector<std::vector<Tensor>> parts;
    for (int64_t first = 0; first < windows.size(0); first += full) {
      // The last part begins earlier, and its repeated results are cut.
      const int64_t begin = std::min(first, windows.size(0) - full);
      std::vector<Tensor> made = engine.run(windows.narrow(0, begin, full));
      parts.resize(made.size());
      for (std::size_t i = 0; i < made.size(); ++i)
        parts[i].push_back(made[i].narrow(0, first - begin, full - (first - begin)));
    }
    return mapped(parts, [](const std::vector<Tensor>& part) { return at::cat(part); });
  }

  const EngineEntry entry_;
  const EngineModel model_;
  const EngineOptions options_;
  const std::string text_;
  std::shared_ptr<FixedEngine> for_all_;
  std::mutex mutex_;
  std::map<Shape, ShapeEngine> engines_;
  int64_t clock_ = 0;
};

std::unique_ptr<Engine> attempt(const std::string& name,
                                const EngineModel& model,
                                const EngineOptions& options,
                                const Tensor& example) {
  const EngineEntry& entry = engine_entries().at(name);
  std::optional<ForeignCall> call;
  if (model.torchscript) call.emplace();
  Checked checked = make_checked(entry, model, options, example);
  if (name != "eager" || options.quantization != "none")
    log::info("{}: {}; {}", model.name, checked.engine->text(), checked.report);
  return std::make_unique<EnginePool>(entry, model, options, example, std::move(checked.engine));
}

/// The engine that has this quantization.
std::string quantizing_engine(const EngineOptions& options) {
  return options.quantization == "int8" ? "openvino" : "eager";
}

/// The engines to try, in order; eager comes last.
std::vector<std::string> candidates(const EngineModel& model, const EngineOptions& options) {
  if (options.backend != "auto") return {options.backend};
  if (options.quantization != "none") return {quantizing_engine(options)};
  std::vector<std::pair<int, std::string>> ranks;
  for (const auto& [name, entry] : engine_entries()) {
    const int rank = entry.rank(model, options);
    if (rank > 0) ranks.emplace_back(-rank, name);
  }
  std::ranges::sort(ranks);
  std::vector<std::string> names;
  for (auto& [rank, name] : ranks) names.push_back(std::move(name));
  return names;
}

}  // namespace

const std::vector<std::string>& engine_names() {
  static const std::vector<std::string> names = keys_of(engine_entries());
  return names;
}

std::vector<std::string> EngineOptions::choices() {
  std::vector<std::string> names{"auto"};
  names.insert(names.end(), engine_names().begin(), engine_names().end());
  return names;
}

void EngineOptions::check() const {
  if (quantization != "none" && backend != "auto" && backend != quantizing_engine(*this)) {
    throw ConfigError("performance.quantization={} needs performance.backend={} (or auto), not {}",
                      quantization,
                      quantizing_engine(*this),
                      backend);
  }
  for (const auto& [name, entry] : engine_entries())
    if (entry.check != nullptr) entry.check(*this);
  if (device::precision_of(precision).compute == at::kDouble) {
    throw ConfigError(
        "trainer.precision={}: models are run in float32, bfloat16 or float16; use 32, bf16 or 16",
        precision);
  }
}

std::string EngineOptions::text_of_values() const {
  std::string text;
  if (device::precision_of(precision).compute != at::kFloat) text += " " + precision;
  if (quantization != "none") text += " " + quantization;
  return text;
}

void EngineOptions::say_what_is_idle(c10::Device device, bool finds_boxes) const {
  const bool is_gpu = device::is_accelerator(device);
  const bool is_traced = backend == "torchscript" || (backend == "auto" && compile_model) ||
                         (backend == "cudagraph" && compile_mode == "max-autotune");
  const auto say = [](const char* key, const std::string& why) {
    warn_once(fmt::format("{}: no effect: {}", key, why));
  };
  if (compile_model && finds_boxes) {
    say("model.compile_model", "a detector's network is run as it is");
  } else if (compile_model && backend != "auto" && backend != "cudagraph") {
    say("model.compile_model", "performance.backend=" + backend + " says what runs the model");
  } else if (compile_model && !is_gpu) {
    say("model.compile_model",
        "on a CPU performance.backend=auto takes the fastest engine in any case, OpenVINO or "
        "eager");
  } else if (!compile_model && compile_mode != "default" && backend != "cudagraph") {
    say("model.compile_mode", "model.compile_model is false");
  }
  if (!fusion_strategy.is_null() && (!is_gpu || !is_traced || finds_boxes)) {
    say("performance.fusion_strategy",
        is_gpu ? "the model is not traced; model.compile_model=true traces it"
               : "this torch fuses traced operations on a GPU alone");
  }
}

void EngineOptions::say_is_unread(const std::string& path) const {
  if (text_of_values().empty() && (backend == "auto" || backend == "eager") && !compile_model)
    return;
  warn_once(path +
            ": TorchScript is run as it is: trainer.precision, model.compile_model, "
            "performance.backend and performance.quantization have no effect on it");
}

void expect_engine(const EngineOptions& options, c10::Device device) {
  options.check();
  if (options.backend == "cudagraph" && !device::has_graphs(device))
    throw ConfigError("performance.backend=cudagraph: needs a GPU; use performance.backend=auto");
  if (options.quantization == "int8_dynamic" && !device.is_cpu())
    throw ConfigError(
        "performance.quantization=int8_dynamic: linear layers in 8 bits are of a CPU; use "
        "trainer.precision=bf16 or 16 on a GPU");
}

std::unique_ptr<Engine> make_engine(const EngineModel& given,
                                    const EngineOptions& options,
                                    const Tensor& example) {
  expect_engine(options, given.device);
  EngineModel model = given;
  model.forward = isolated(given.forward);
  const std::vector<std::string> names = candidates(model, options);
  for (const std::string& name : names) {
    const EngineEntry& entry = engine_entries().at(name);
    if (names.size() == 1 || entry.make_best == nullptr) continue;
    if (std::shared_ptr<FixedEngine> best = entry.make_best(model, options, example))
      return std::make_unique<EnginePool>(entry, model, options, example, std::move(best));
  }
  for (const std::string& name : names) {
    if (name == "eager" && options.quantization == "none")
      return attempt(name, model, options, example);
    std::string why;
    bool is_usual = false;
    try {
      return attempt(name, model, options, example);
    } catch (const EngineUnfit& unfit) {
      why = unfit.what();
      is_usual = unfit.is_usual;
    } catch (const std::exception& error) {
      if (!is_of_engine(error)) throw;
      why = first_line(error.what());
    }
    if (names.size() == 1) {
      throw ConfigError("performance.{}: {}; use performance.backend=auto{}",
                        options.quantization == "none" ? "backend=" + name
                                                       : "quantization=" + options.quantization,
                        why,
                        options.quantization == "none" ? "" : " without quantization");
    }
    log::write(is_usual ? log::Level::debug : log::Level::info,
               fmt::format("{}: not {}: {}", model.name, name, why));
  }
  throw std::logic_error("no engine takes every model");
}

}  // namespace cytra::inference
