// The work of `benchmark_performance`: a model under each option, on this machine.
#include <algorithm>
#include <cstdio>
#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/benchmark/baseline.h"
#include "app/benchmark/measures.h"
#include "app/benchmark/report.h"
#include "app/benchmark/rows.h"
#include "app/benchmark/service.h"
#include "app/benchmark/workload.h"
#include "app/run/entry.h"
#include "app/setup/train_config.h"
#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/own_files.h"
#include "base/strings.h"
#include "base/version.h"
#include "config/composer.h"
#include "config/json.h"
#include "config/run_config.h"
#include "device/backend.h"
#include "device/convolution.h"
#include "device/device.h"
#include "device/error.h"
#include "device/fast_precision.h"
#include "device/precision.h"
#include "nn/model.h"
#include "nn/weights.h"
#include "perf/machine_load.h"

namespace cytra::app {
namespace {

using config::Node;

constexpr int kSlower = 8;  // exit code

/// All that `benchmark_performance` takes.
struct BenchmarkConfig : CommonConfig {
  struct Checkpoint {
    std::optional<std::string> ckpt_path;
    void visit(auto& v) {
      v("ckpt_path", ckpt_path, "weights to measure, with the configuration that they bring");
    }
  };
  struct Trainer : device::DeviceOptions {
    std::string precision = "auto";
    void visit(auto& v) {
      DeviceOptions::visit(v);
      std::vector<std::string> names = device::precision_names();
      names.insert(names.begin(), "auto");
      v("precision", precision, "precision of the model; auto: that of its training", names);
    }
  };
  std::optional<std::string> config, baseline;
  std::vector<std::string> overrides, output;
  std::optional<double> threshold;
  Checkpoint checkpoint;
  std::vector<int64_t> input_shape, batch_sizes;
  bool compare_opts = false, inference = false, train = false, service = false;
  double seconds = ServiceLoads().seconds;
  perf::Repeats repeats;
  Trainer trainer;
  TrainPerformanceOptions performance;
  void visit(auto& v) {
    v("config", config, "an experiment, or a run's folder, that describes the model");
    v("overrides", overrides, "overrides of the experiment");
    v("checkpoint", checkpoint, "the model to measure");
    v("input_shape", input_shape, "N C [D] H W; empty: one image of the usual size");
    v("batch_sizes", batch_sizes, "batch sizes to measure; empty: that of input_shape");
    v("inference", inference, "measure the model's forward pass; the default without train");
    v("train", train, "measure training steps: forward, loss, backward, clipping, update");
    v("service", service, "measure the model behind a BatchingService: latency by load");
    v("seconds", seconds, "seconds that each load of the service lasts", 0.001, 86400);
    v("compare_opts", compare_opts, "measure every option, not only those of the experiment");
    v("warmup", repeats.warmup, "runs before the timed ones", 0, 1e9);
    v("repeats", repeats.timed, "timed runs per figure", 1, 1e9);
    v("output", output, "reports to write: NAME.json, NAME.html");
    v("baseline", baseline, "an earlier JSON report, with which rows are compared");
    v("threshold",
      threshold,
      "the run fails when it is this many percent slower than the baseline; null: never",
      0,
      1e9);
    v("trainer", trainer, "where to compute, and how exactly");
    v("performance", performance, "switches that hold for the whole process");
    CommonConfig::visit_names(v);
  }
  void check() const {
    for (const std::string& path : output) {
      if (!path.ends_with(".json") && !path.ends_with(".html"))
        throw ConfigError("--output {}: expected NAME.json or NAME.html", path);
    }
    if (threshold && !baseline) throw ConfigError("--threshold needs --baseline REPORT.json");
  }
};
const bool benchmark_is_added = add_program<BenchmarkConfig>("benchmark_performance");

/// "im2im/x" of "configs/experiment/im2im/x.yaml"; "" where `name` is the path of a run.
std::string experiment_of(std::string name) {
  if (name.ends_with(".yaml")) name.erase(name.size() - 5);
  constexpr std::string_view kGroup = "experiment/";
  const std::size_t group = ("/" + name).rfind("/" + std::string(kGroup));
  if (group != std::string::npos) return name.substr(group + kGroup.size());
  return path_exists(name) || path_exists(name + ".yaml") ? "" : name;
}

/// The `overrides` of an experiment. Where --input-shape has three sides and the overrides leave a
/// 2D model, those that make it 3D are added.
Node compose_experiment(const cli::Run& run,
                        std::vector<std::string> overrides,
                        const std::vector<int64_t>& shape) {
  const config::Composer composer(run.config_folders);
  const auto is_of_sides = [](const std::string& word) {
    return word.find("spatial_dims") != std::string::npos || word.starts_with("patch_shape");
  };
  Node tree = composer.compose("train", overrides);
  if (shape.size() != 5 || tree.get<int64_t>("spatial_dims", 3) == 3 ||
      std::ranges::any_of(overrides, is_of_sides))
    return tree;
  overrides.emplace_back("spatial_dims=3");
  overrides.push_back(
      fmt::format("patch_shape=[{}]", fmt::join(shape.begin() + 2, shape.end(), ",")));
  log::info("--input-shape has three sides: {} {}", *(overrides.end() - 2), overrides.back());
  return composer.compose("train", overrides);
}

/// The configuration that the checkpoint was trained with; null where it holds none.
Node config_of_checkpoint(const std::string& path) {
  try {
    return nn::checkpoint_config(path);
  } catch (const DataError&) {
    return {};
  }
}

Node training_config(const cli::Run& run, const BenchmarkConfig& config) {
  std::vector<std::string> overrides = config.overrides;
  const std::string name = config.config.value_or("");
  const std::string checkpoint = config.checkpoint.ckpt_path.value_or("");
  const bool has_experiment = std::ranges::any_of(
      overrides, [](const auto& word) { return word.starts_with("experiment="); });
  if (name.empty() && !has_experiment) {
    if (!overrides.empty()) {
      throw ConfigError(
          "{}: not a key of benchmark_performance; keys of an experiment need --config EXPERIMENT",
          overrides.front());
    }
    if (!checkpoint.empty()) return nn::checkpoint_config(checkpoint);
    throw ConfigError("nothing to measure: give --config EXPERIMENT or --ckpt CHECKPOINT");
  }
  const std::string experiment = experiment_of(name);
  if (!name.empty() && experiment.empty()) {
    if (overrides.empty()) return config::load_run_config(name, true);
    throw ConfigError(
        "{}: overrides are for an experiment, but --config {} is a run", overrides.front(), name);
  }
  if (!checkpoint.empty() && overrides.empty()) {
    if (Node own = config_of_checkpoint(checkpoint); !own.is_null()) {
      log::info("{}: measured with the configuration that it holds, not with that of {}",
                checkpoint,
                name);
      return own;
    }
  }
  const std::string word = "experiment=" + experiment;
  if (!name.empty()) overrides.insert(overrides.begin(), word);
  for (const std::string& own : run.overrides) {  // the program's keys, and the experiment's
    if (own.starts_with("performance")) overrides.push_back(own);
  }
  try {
    return compose_experiment(run, std::move(overrides), config.input_shape);
  } catch (const ConfigError& error) {
    std::string what = error.what();
    const std::string typed = "command line '" + word + "'";
    if (name.empty() || !what.starts_with(typed)) throw;
    throw ConfigError("--config " + name + what.substr(typed.size()));
  }
}

/// The shape of the model's input: `shape`, or one image of usual size. Throws: ConfigError.
std::vector<int64_t> input_shape(const nn::Model& model, std::vector<int64_t> shape) {
  const int64_t channels = model.in_channels(), dims = model.spatial_dims();
  if (shape.empty()) {
    shape = {1, channels};
    const std::vector<int64_t> fixed = model.fixed_size();
    shape.insert(shape.end(), fixed.begin(), fixed.end());
    shape.resize(static_cast<std::size_t>(2 + dims), dims == 2 ? 256 : 64);
  }
  const std::string typed = fmt::format("--input-shape {}", fmt::join(shape, " "));
  if (std::ssize(shape) != 2 + dims) {
    throw ConfigError("{}: the model takes {}D images, expected {}",
                      typed,
                      dims,
                      dims == 2 ? "N C H W" : "N C D H W");
  }
  if (*std::ranges::min_element(shape) < 1)
    throw ConfigError(typed + ": every size must be at least 1");
  if (shape[1] != channels)
    throw ConfigError("{}: {} channels, the model takes {}", typed, shape[1], channels);
  const std::vector<int64_t> divisor = model.divisor();
  for (std::size_t i = 0; i < divisor.size(); ++i) {
    if (shape[2 + i] % divisor[i] == 0) continue;
    throw ConfigError(
        "{}: the model takes sizes that are multiples of {}", typed, fmt::join(divisor, " "));
  }
  return shape;
}

/// The variant that the configuration describes.
Variant configured(const Workload& workload) {
  Variant variant;
  variant.precision = workload.config.get<std::string>("trainer.precision", "32-true");
  variant.tf32 =
      device::backend_of(workload.device).tf32().convolutions && variant.arithmetic() == "fp32";
  if (workload.device.is_cpu()) variant.convolution = device::conv_algorithm();
  return variant;
}

Workload make_workload(const cli::Run& run, const BenchmarkConfig& config) {
  Workload workload;
  workload.config = training_config(run, config);
  workload.checkpoint = config.checkpoint.ckpt_path.value_or("");
  const bool is_experiment = workload.checkpoint.empty() && workload.config.has("performance");
  const TrainPerformanceOptions performance =
      is_experiment ? config::parse<TrainPerformanceOptions>(workload.config.at("performance"))
                    : config.performance;
  std::string accelerator = config.trainer.accelerator;
  if (accelerator == "auto" && is_experiment)
    accelerator = workload.config.get<std::string>("trainer.accelerator", "auto");
  if (config.trainer.precision != "auto")
    workload.config.find("trainer")->set("precision", Node::make_string(config.trainer.precision));
  const bool is_trained = !workload.checkpoint.empty() && !config.train;
  workload.forbid_transfers = performance.forbid_transfers.value_or("");
  device::prepare(performance);
  workload.device = device::choose_device(accelerator);
  if (config.trainer.precision == "auto" && is_trained) {  // as `predict` does
    const auto trained = workload.config.get<std::string>("trainer.precision", "32");
    workload.config.find("trainer")->set(
        "precision",
        Node::make_string(device::precision_to_run(std::nullopt, trained, workload.device)));
  }
  device::apply(performance, workload.device);
  workload.shape =
      input_shape(*make_model(workload, workload.config.at("task.model"), {}), config.input_shape);
  return workload;
}

/// Counts the FLOPs of an image; none where the memory does not suffice to count them.
nn::Flops flops_of_image(const auto& count, const Workload& workload, int64_t batch) {
  nn::Flops flops =
      device::if_it_fits([&] { return count(workload, batch); }).value_or(nn::Flops{});
  flops.forward /= batch;
  flops.backward /= batch;
  flops.values /= batch;
  return flops;
}

/// The device's peaks in every arithmetic that the variants take.
perf::Roofline roofline_of(const Workload& workload, const std::vector<Variant>& variants) {
  std::vector<std::string> names;
  for (const Variant& variant : variants) {
    const std::string name = variant.arithmetic();
    if (name == "tf32" && !device::backend_of(workload.device).traits.has_tf32) continue;
    if (!contains(names, name)) names.push_back(name);
  }
  return perf::measure_roofline(workload.device, names);
}

/// The part of a report that describes the run and stands before the rows.
Node head_of(const Workload& workload, bool has_training) {
  Node report = Node::make_map();
  report.set("cytra_version", Node::make_string(version()));
  report.set("device", Node::make_string(device::describe(workload.device)));
  report.set("input_shape", Node::make_list(workload.shape));
  report.set("model", workload.config.at("task.model"));
  if (!has_training) return report;
  Node& training = report.set("training_of", Node::make_map());
  for (const char* part : {"task.loss", "optimizer", "trainer.gradient_clip_val"}) {
    if (const Node* node = workload.config.find(part); node != nullptr) training.set(part, *node);
  }
  return report;
}

/// Adds the device's peaks and the rows to the report.
void add_rows(const Workload& workload,
              const BenchmarkConfig& config,
              const std::vector<int64_t>& batches,
              Node& report) {
  const auto variants_of = [&](std::vector<Variant> all) {
    return config.compare_opts ? all : std::vector<Variant>{configured(workload)};
  };
  Costs costs{
      roofline_of(workload, variants_of(inference_variants())), {}, workload.device.is_cpu()};
  report.set("roofline", node_of(costs.roofline));
  const auto add = [&](const char* section,
                       const std::vector<Variant>& variants,
                       const auto& count,
                       const auto& prepare_one) {
    costs.image = flops_of_image(count, workload, batches.front());
    Node& rows = report.set(section, Node::make_map());
    const Prepare prepare = [&](const Variant& variant, int64_t size) {
      return prepare_one(workload, variant, size);
    };
    for (const int64_t batch : batches) {
      rows.set(std::to_string(batch),
               measure_rows(variants, config.compare_opts, batch, config.repeats, costs, prepare));
    }
  };
  if (config.inference || (!config.train && !config.service))
    add("inference", variants_of(inference_variants()), count_inference, prepare_inference);
  if (!workload.forbid_transfers.empty()) {
    if (config.train)
      watch_training(workload, configured(workload), batches.front());
    else
      log::info("performance.forbid_transfers: it is for training steps, which --train measures");
  }
  if (config.train)
    add("training", variants_of(training_variants()), count_training, prepare_training);
  if (config.service) {
    ServiceLoads loads;
    loads.seconds = config.seconds;
    if (!config.batch_sizes.empty()) loads.max_batch_size = *std::ranges::max_element(batches);
    report.set("service", measure_service(workload, configured(workload), loads));
  }
}

bool has_any_figures(Node& report) {
  bool has = false;
  each_row(report, [&](const auto&, const auto&, const auto&, Node& row) {
    has = has || row.find_direct("median_ms") != nullptr;
  });
  return has;
}

int benchmark(cli::Run run, const BenchmarkConfig& config) {
  for (const std::string& path : config.output) expect_replaceable(path);
  const Workload workload = make_workload(run, config);
  std::vector<int64_t> batches = config.batch_sizes;
  if (batches.empty()) batches.push_back(workload.shape[0]);
  if (*std::ranges::min_element(batches) < 1)
    throw ConfigError("--batch-sizes: every size must be at least 1");
  log::info("{} on {}, input ({})",
            workload.config.get<std::string>("task.model._target_"),
            device::describe(workload.device),
            fmt::join(workload.shape, ","));
  perf::warn_if_busy("benchmark_performance");
  const perf::MachineLoad load;
  Node report = head_of(workload, config.train), baseline;
  if (config.baseline) baseline = read_baseline(*config.baseline, report);
  add_rows(workload, config, batches, report);
  report.set("transfers", measure_transfers(workload, batches.front(), config.repeats));
  report.set("load", node_of(load));
  load.report("benchmark_performance");
  std::vector<std::string> slower;
  if (config.baseline) slower = compare(baseline, config.threshold, report);
  for (const std::string& path : config.output) {
    const auto parent = std::filesystem::path(path).parent_path();
    if (!parent.empty()) make_folders(parent.string());
    write_file(path,
               path.ends_with(".html") ? html_of(report) : config::to_plain_json(report) + "\n");
    log::info("report: {}", path);
  }
  std::string text = run.json ? config::to_plain_json(report) + "\n" : table_of(report);
  if (!run.json) text += transfer_table(report);
  if (config.service && !run.json) text += service_table(report.at("service"));
  std::fwrite(text.data(), 1, text.size(), stdout);
  if (!config.service && !has_any_figures(report))
    throw MemoryError("out of memory: try smaller --batch-sizes");
  for (const std::string& row : slower) log::write(log::Level::error, "slower than before: " + row);
  return slower.empty() ? 0 : kSlower;
}

}  // namespace
}  // namespace cytra::app

extern "C" int cytra_benchmark_performance(const cytra::cli::Run& run) {
  return cytra::app::start(run, cytra::app::benchmark);
}
