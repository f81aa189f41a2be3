#pragma once
#include <optional>
#include <string>
#include <vector>

#include <c10/core/Device.h>

#include "config/visit.h"

namespace cytra::device {

/// Chooses the device for Lightning's `accelerator`: auto (a GPU when there is one), cpu, gpu, or
/// a kind of GPU. Loads torch's CUDA libraries only when a CUDA device may be used. Throws:
/// ConfigError when a GPU is asked for and there is none.
c10::Device choose_device(const std::string& accelerator);
/// The values that choose_device() accepts.
std::vector<std::string> accelerator_choices();

/// The device that a program computes on: `trainer` of the programs that do not train.
struct DeviceOptions {
  std::string accelerator = "auto";
  void visit(auto& v) {
    v("accelerator", accelerator, "auto takes a GPU when there is one", accelerator_choices());
  }
};

/// The `performance` group: switches that apply to the whole process.
struct PerformanceOptions {
  int64_t num_threads = 0, max_split_size_mb = 0;
  std::optional<bool> enable_tf32;
  bool enable_cudnn_benchmark = false, expandable_segments = false;
  double memory_fraction = 1;
  std::string matmul_precision = "highest", convolution = "auto";
  void visit(auto& v) {
    v("num_threads",
      num_threads,
      "CPU threads of one operation; 0: all processors that the process may use",
      0,
      4096);
    v("enable_tf32",
      enable_tf32,
      "TF32 tensor cores for float32 matrix products and convolutions (Ampere and later); null: "
      "for convolutions, as torch by itself");
    v("enable_cudnn_benchmark",
      enable_cudnn_benchmark,
      "let cuDNN measure its algorithms for each new shape");
    v("matmul_precision",
      matmul_precision,
      "precision of float32 matrix products",
      {"highest", "high", "medium"});
    v("convolution",
      convolution,
      "float32 convolutions on a CPU: by Winograd's algorithm where that is faster (auto), never, "
      "or wherever it can be",
      {"auto", "direct", "winograd"});
    v("max_split_size_mb",
      max_split_size_mb,
      "MB above which torch's GPU allocator splits no block; 0: no limit",
      0,
      1e9);
    v("expandable_segments",
      expandable_segments,
      "let torch's GPU allocator grow its segments: less fragmentation");
    v("memory_fraction",
      memory_fraction,
      "share of a GPU's memory that torch's allocator may take; more is an error: out of memory",
      0.01,
      1);
  }
};
/// Sets what must be set before a device is chosen: the allocator's settings, and what
/// `deterministic` ("true", "false", "warn": where possible) needs. Follows
/// torch.use_deterministic_algorithms and PYTORCH_CUDA_ALLOC_CONF; a variable that the user has
/// set wins.
void prepare(const PerformanceOptions& options, const std::string& deterministic = "false");
/// Applies the other options; says once which have no effect on this device.
void apply(const PerformanceOptions& options, c10::Device device);

/// Peak memory in bytes: of the process on a CPU, of torch's allocator on a CUDA device.
int64_t peak_memory(c10::Device device);
/// Memory in use now, in bytes: the resident memory on a CPU, that of torch's allocator on a CUDA
/// device.
int64_t used_memory(c10::Device device);
void reset_peak_memory(c10::Device device);
/// Waits until the device has done all its work.
void synchronize(c10::Device device);
/// The device for people: "cpu (AMD EPYC, 2 threads)", "cuda:0 (NVIDIA H100)".
std::string describe(c10::Device device);

}  // namespace cytra::device
