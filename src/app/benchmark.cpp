// The work of `benchmark_performance`: a model under each option, on this machine.
#include <algorithm>
#include <filesystem>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/autocast_mode.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/benchmark_step.h"
#include "app/entry.h"
#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/strings.h"
#include "base/version.h"
#include "config/composer.h"
#include "config/registry.h"
#include "config/run_config.h"
#include "nn/model.h"
#include "nn/weights.h"
#include "perf/compile.h"
#include "perf/device.h"

namespace cytra::app {
namespace {

using config::Node;

/// All that `benchmark_performance` takes.
struct BenchmarkConfig : CommonConfig {
  struct Checkpoint {
    std::optional<std::string> ckpt_path;
    template <class V>
    void visit(V& v) {
      v("ckpt_path", ckpt_path, "weights to measure; without --config their own configuration");
    }
  };
  std::optional<std::string> config, output;
  std::vector<std::string> overrides;
  Checkpoint checkpoint;
  std::vector<int64_t> input_shape, batch_sizes;
  bool compare_opts = false, train_step = false;
  int64_t warmup = 3, repeats = 10;
  perf::DeviceOptions trainer;
  template <class V>
  void visit(V& v) {
    v("config", config, "an experiment, or a run's folder, that describes the model");
    v("overrides", overrides, "of the experiment");
    v("checkpoint", checkpoint, "the model to measure");
    v("input_shape", input_shape, "N C [D] H W; empty: one image, 256^2 or 64^3");
    v("batch_sizes", batch_sizes, "batch sizes to measure; empty: that of input_shape");
    v("compare_opts", compare_opts, "measure every option, not the eager baseline alone");
    v("train_step", train_step, "measure a training step, too");
    v("warmup", warmup, "runs before the timed ones", 0, 1e9);
    v("repeats", repeats, "timed runs per figure", 1, 1e9);
    v("output", output, "JSON report");
    v("trainer", trainer, "where to compute");
    CommonConfig::visit(v);
  }
};
const bool benchmark_is_added = add_program<BenchmarkConfig>("benchmark_performance");

struct Variant {
  const char* name;
  bool channels_last, bf16, compiled;
};
constexpr Variant kVariants[] = {{"eager", false, false, false},
                                 {"channels_last", true, false, false},
                                 {"bf16", false, true, false},
                                 {"channels_last+bf16", true, true, false},
                                 {"compile", false, false, true},
                                 {"channels_last+compile", true, false, true}};

std::shared_ptr<nn::Model> make_variant_model(const Subject& subject, bool channels_last) {
  Node node = subject.config.at("model");
  Node flag;
  flag.kind = config::Kind::boolean;
  flag.boolean = channels_last;
  node.set("channels_last", flag);
  at::manual_seed(0);  // without a checkpoint, too, every variant has the same weights
  std::shared_ptr<nn::Model> model = make<nn::Model>(node);
  if (!subject.checkpoint.empty()) nn::load_weights(subject.checkpoint, *model, true);
  model->eval();
  for (at::Tensor& parameter : model->parameters()) parameter.requires_grad_(false);
  nn::place(*model, subject.device);
  return model;
}

struct Figure {
  Times times;
  double peak_mb = 0, max_difference = 0;
  at::Tensor output;
};

Figure measure_variant(const Subject& subject,
                       const Variant& variant,
                       const at::Tensor& input,
                       const at::Tensor& expected) {
  const std::shared_ptr<nn::Model> model = make_variant_model(subject, variant.channels_last);
  const at::NoGradGuard no_grad;
  perf::Forward forward = [model](const at::Tensor& x) { return (*model)(x); };
  if (variant.compiled) forward = perf::compile(forward, input);
  const auto type = subject.device.type();
  if (variant.bf16) {
    at::autocast::set_autocast_enabled(type, true);
    at::autocast::set_autocast_dtype(type, at::kBFloat16);
    at::autocast::increment_nesting();  // weights are cast once, not at every pass
  }
  Figure figure;
  const auto leave = [&] {
    if (!variant.bf16) return;
    at::autocast::decrement_nesting();
    at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(type, false);
  };
  try {
    perf::reset_peak_memory(subject.device);
    figure.times = measure(
        [&] { figure.output = forward(input); }, subject.warmup, subject.repeats, subject.device);
  } catch (...) {
    leave();
    throw;
  }
  leave();
  figure.peak_mb = static_cast<double>(perf::peak_memory(subject.device)) / 1e6;
  figure.output = figure.output.to(at::kFloat);
  if (expected.defined())
    figure.max_difference = (figure.output - expected).abs().max().item<double>();
  return figure;
}

Node measure_inference(const Subject& subject, int64_t batch, bool compare, std::string& table) {
  std::vector<int64_t> shape = subject.shape;
  shape[0] = batch;
  at::manual_seed(0);
  const at::Tensor input = at::randn(shape).to(subject.device);
  Node rows = Node::make_map();
  at::Tensor expected;
  double baseline = 0;
  for (const Variant& variant : kVariants) {
    if (!compare && &variant != &kVariants[0]) break;
    Node row = Node::make_map();
    try {
      const Figure figure = measure_variant(subject, variant, input, expected);
      if (!expected.defined()) {
        expected = figure.output;
        baseline = figure.times.median();
      }
      const double rate = 1000.0 * static_cast<double>(batch) / figure.times.median();
      row.set("median_ms", real(figure.times.median()));
      row.set("p95_ms", real(figure.times.at_share(0.95)));
      row.set("images_per_s", real(rate));
      row.set("peak_memory_mb", real(figure.peak_mb));
      row.set("speedup", real(baseline / figure.times.median()));
      row.set("max_difference", real(figure.max_difference));
      table +=
          fmt::format("{:>5}  {:<22} {:>10.2f} {:>10.2f} {:>11.2f} {:>10.0f} {:>8.2f} {:>10.1e}\n",
                      batch,
                      variant.name,
                      figure.times.median(),
                      figure.times.at_share(0.95),
                      rate,
                      figure.peak_mb,
                      baseline / figure.times.median(),
                      figure.max_difference);
    } catch (
        const c10::Error& error) {  // an option this device does not have; the others still count
      const std::string reason = split(error.what_without_backtrace(), '\n').front();
      row.set("error", Node::make_string(reason));
      table += fmt::format("{:>5}  {:<22} not available: {}\n", batch, variant.name, reason);
    }
    rows.set(variant.name, row);
  }
  return rows;
}

/// "im2im/x" of "configs/experiment/im2im/x.yaml"; "" for the path of a run.
std::string experiment_of(std::string name) {
  if (ends_with(name, ".yaml")) name.erase(name.size() - 5);
  constexpr std::string_view kGroup = "experiment/";
  const std::size_t group = ("/" + name).rfind("/" + std::string(kGroup));
  if (group != std::string::npos) return name.substr(group + kGroup.size());
  std::error_code error;
  return std::filesystem::exists(name, error) || std::filesystem::exists(name + ".yaml", error)
             ? ""
             : name;
}

Node model_config(const cli::Run& run, const BenchmarkConfig& config) {
  std::vector<std::string> overrides = config.overrides;
  const std::string name = config.config.value_or("");
  const bool has_experiment = std::any_of(overrides.begin(), overrides.end(), [](const auto& word) {
    return starts_with(word, "experiment=");
  });
  if (name.empty() && !has_experiment) {
    if (!overrides.empty()) {
      throw ConfigError(fmt::format(
          "{}: no key of benchmark_performance; those of an experiment go with --config EXPERIMENT",
          overrides.front()));
    }
    const std::string checkpoint = config.checkpoint.ckpt_path.value_or("");
    if (!checkpoint.empty()) return nn::checkpoint_config(checkpoint);
    throw ConfigError("nothing to measure: give --config EXPERIMENT or --ckpt CHECKPOINT");
  }
  const std::string experiment = experiment_of(name);
  if (!name.empty() && experiment.empty()) {
    if (overrides.empty()) return config::load_run_config(name, true);
    throw ConfigError(fmt::format(
        "{}: overrides go with an experiment, and --config {} is a run", overrides.front(), name));
  }
  const std::string word = "experiment=" + experiment;
  if (!name.empty()) overrides.insert(overrides.begin(), word);
  try {
    return config::Composer(run.config_folders).compose("train", overrides);
  } catch (const ConfigError& error) {
    std::string what = error.what();
    const std::string typed = "command line '" + word + "'";
    if (name.empty() || !starts_with(what, typed)) throw;
    throw ConfigError("--config " + name + what.substr(typed.size()));
  }
}

/// What the model takes: `shape`, or one image of usual size. Throws: ConfigError.
std::vector<int64_t> input_shape(const nn::Model& model, std::vector<int64_t> shape) {
  const int64_t channels = model.in_channels(), dims = model.spatial_dims();
  if (shape.empty()) {
    shape = {1, channels};
    shape.resize(static_cast<std::size_t>(2 + dims), dims == 2 ? 256 : 64);
  }
  const std::string typed = fmt::format("--input-shape {}", fmt::join(shape, " "));
  if (static_cast<int64_t>(shape.size()) != 2 + dims) {
    throw ConfigError(fmt::format("{}: the model takes {}D images, expected {}",
                                  typed,
                                  dims,
                                  dims == 2 ? "N C H W" : "N C D H W"));
  }
  if (*std::min_element(shape.begin(), shape.end()) < 1)
    throw ConfigError(typed + ": every size must be at least 1");
  if (shape[1] != channels) {
    throw ConfigError(
        fmt::format("{}: {} channels, the model takes {}", typed, shape[1], channels));
  }
  const std::vector<int64_t> divisor = model.divisor();
  for (std::size_t i = 0; i < divisor.size(); ++i) {
    if (shape[2 + i] % divisor[i] == 0) continue;
    throw ConfigError(fmt::format(
        "{}: the model takes sizes that are multiples of {}", typed, fmt::join(divisor, " ")));
  }
  return shape;
}

/// That of the program; where it is auto, that of the experiment.
std::string accelerator_of(const BenchmarkConfig& config, const Node& tree) {
  if (config.trainer.accelerator != "auto" || !config.checkpoint.ckpt_path.value_or("").empty())
    return config.trainer.accelerator;
  return tree.get<std::string>("trainer.accelerator", "auto");
}

int benchmark(cli::Run run, const BenchmarkConfig& config) {
  Subject subject;
  subject.config = model_config(run, config);
  subject.checkpoint = config.checkpoint.ckpt_path.value_or("");
  perf::prepare(config.performance);
  subject.device = perf::choose_device(accelerator_of(config, subject.config));
  subject.shape = input_shape(*make_variant_model(subject, false), config.input_shape);
  subject.warmup = config.warmup;
  subject.repeats = config.repeats;
  std::vector<int64_t> batches = config.batch_sizes;
  if (batches.empty()) batches.push_back(subject.shape[0]);
  if (*std::min_element(batches.begin(), batches.end()) < 1)
    throw ConfigError("--batch-sizes: every size must be at least 1");
  perf::apply(config.performance, subject.device);
  log::info("{} on {}, input ({})",
            subject.config.get<std::string>("model._target_"),
            perf::describe(subject.device),
            fmt::join(subject.shape, ","));

  Node report = Node::make_map();
  report.set("cytra_version", Node::make_string(version()));
  report.set("device", Node::make_string(perf::describe(subject.device)));
  report.set("model", subject.config.at("model"));
  std::string table = fmt::format("{:>5}  {:<22} {:>10} {:>10} {:>11} {:>10} {:>8} {:>10}\n",
                                  "batch",
                                  "option",
                                  "median ms",
                                  "p95 ms",
                                  "images/s",
                                  "peak MB",
                                  "speedup",
                                  "max diff");
  Node& inference = report.set("inference", Node::make_map());
  for (const int64_t batch : batches) {
    inference.set(std::to_string(batch),
                  measure_inference(subject, batch, config.compare_opts, table));
  }
  if (config.train_step) {
    const Node step = report.set("train_step", measure_train_step(subject));
    table += fmt::format("training step of ({}), {}: median {:.2f} ms, p95 {:.2f} ms\n",
                         fmt::join(subject.shape, ","),
                         step.get<std::string>("precision"),
                         step.get<double>("median_ms"),
                         step.get<double>("p95_ms"));
  }
  const std::string output = config.output.value_or("");
  if (!output.empty()) {
    const auto parent = std::filesystem::path(output).parent_path();
    if (!parent.empty()) make_folders(parent.string());
    write_file(output, config::to_json(report) + "\n");
    log::info("report: {}", output);
  }
  const std::string text = run.json ? config::to_json(report) + "\n" : table;
  std::fwrite(text.data(), 1, text.size(), stdout);
  return 0;
}

}  // namespace
}  // namespace cytra::app

extern "C" int cytra_benchmark_performance(const cytra::cli::Run& run) {
  return cytra::app::start(run, cytra::app::benchmark);
}
