#include "device/device.h"

#include <cstdlib>
#include <utility>

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include "base/control_groups.h"
#include "base/error.h"
#include "base/log.h"
#include "base/strings.h"
#include "device/backend.h"
#include "device/convolution.h"

namespace cytra::device {

c10::Device choose_device(const std::string& accelerator) {
  if (accelerator == "cpu") return c10::kCPU;
  std::vector<std::string> problems;
  bool is_expected = true;  // without a GPU the CPU is expected; with one, the GPU would be idle
  for (const Backend* backend : accelerators()) {
    if (accelerator != "auto" && accelerator != "gpu" && accelerator != backend->name) continue;
    const Absence absence = backend->find();
    // The current device of this thread is used: each process among several has set its own.
    if (absence.text.empty()) return backend->current();
    problems.push_back(absence.text);
    is_expected = is_expected && absence.is_expected;
  }
  const std::string problem =
      problems.empty() ? "expected " + join(accelerator_choices(), ", ") : join(problems, "; ");
  if (accelerator != "auto") {
    throw ConfigError(
        "trainer.accelerator={}: {}; use trainer.accelerator=cpu (or auto)", accelerator, problem);
  }
  log::write(is_expected ? log::Level::debug : log::Level::warn, "using the CPU: " + problem);
  return c10::kCPU;
}

std::vector<std::string> accelerator_choices() {
  std::vector<std::string> choices{"auto", "cpu", "gpu"};
  for (const Backend* backend : accelerators()) choices.emplace_back(backend->name);
  return choices;
}

void prepare(const PerformanceOptions& options, const std::string& deterministic) {
  if (std::getenv("CUDA_POWER_MODE") != nullptr)
    log::warn(
        "CUDA_POWER_MODE: no effect, neither CUDA nor its driver reads it; `nvidia-smi -pl WATTS` "
        "sets a GPU's power limit");
  if (options.max_split_size_mb > 0 && options.max_split_size_mb < 20) {  // torch's own limit
    throw ConfigError("performance.max_split_size_mb: expected 0 or at least 20, got {}",
                      options.max_split_size_mb);
  }
  std::vector<std::string> settings;
  if (options.max_split_size_mb > 0)
    settings.push_back(fmt::format("max_split_size_mb:{}", options.max_split_size_mb));
  if (options.expandable_segments) settings.emplace_back("expandable_segments:True");
  if (options.memory_fraction < 1)
    settings.push_back(fmt::format("per_process_memory_fraction:{}", options.memory_fraction));
  // Torch knows both names; the first one wins.
  const bool is_set = std::getenv("PYTORCH_ALLOC_CONF") != nullptr ||
                      std::getenv("PYTORCH_CUDA_ALLOC_CONF") != nullptr;
  if (!settings.empty() && !is_set) setenv("PYTORCH_ALLOC_CONF", join(settings, ",").c_str(), 1);
  if (deterministic == "false") return;
  setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", 0);
  at::Context& context = at::globalContext();
  context.setDeterministicAlgorithms(true, /*warn_only=*/deterministic == "warn");
  context.setDeterministicCuDNN(true);
  context.setDeterministicFillUninitializedMemory(false);  // filling costs time, and nothing reads
                                                           // it
}

namespace {

/// The number of threads; torch uses every core that it sees, but a container may have a smaller
/// quota. 0: the number chosen by torch, or by the user with OpenMP's or MKL's variable.
int threads_of(const PerformanceOptions& options) {
  if (options.num_threads > 0) return static_cast<int>(options.num_threads);
  if (std::getenv("OMP_NUM_THREADS") != nullptr || std::getenv("MKL_NUM_THREADS") != nullptr)
    return 0;
  const int most = available_processors();
  return most < at::get_num_threads() ? most : 0;
}

}  // namespace

void apply(const PerformanceOptions& options, c10::Device device) {
  if (const int threads = threads_of(options); threads > 0) at::set_num_threads(threads);
  at::Context& context = at::globalContext();
  context.setFloat32MatmulPrecision(options.matmul_precision);
  set_conv_algorithm(options.convolution == "auto"     ? ConvAlgorithm::automatic
                     : options.convolution == "direct" ? ConvAlgorithm::direct
                                                       : ConvAlgorithm::winograd);
  if (backend_of(device).apply(options)) return;
  std::vector<std::string> idle;
  if (options.enable_tf32 == true) idle.emplace_back("enable_tf32");
  if (options.enable_cudnn_benchmark) idle.emplace_back("enable_cudnn_benchmark");
  if (options.max_split_size_mb > 0) idle.emplace_back("max_split_size_mb");
  if (options.expandable_segments) idle.emplace_back("expandable_segments");
  if (options.memory_fraction < 1) idle.emplace_back("memory_fraction");
  static std::string told;  // apply() is called repeatedly where settings are measured
  const std::string text = join(idle, ", ");
  if (!idle.empty() && std::exchange(told, text) != text)
    log::info("performance: no effect on a CPU: {}", text);
}

int64_t peak_memory(c10::Device device) {
  return backend_of(device).peak_memory(device);
}

int64_t used_memory(c10::Device device) {
  return backend_of(device).used_memory(device);
}

void reset_peak_memory(c10::Device device) {
  backend_of(device).reset_peak_memory(device);
}

void synchronize(c10::Device device) {
  backend_of(device).synchronize(device);
}

std::string describe(c10::Device device) {
  return backend_of(device).describe(device);
}

}  // namespace cytra::device
