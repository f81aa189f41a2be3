#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "perf/scopes.h"

namespace cytra::perf {

/// The options of torch's profiler, besides names and times.
struct OperatorProfileOptions {
  bool cuda = false;            // kernels and copies of the GPU
  bool record_shapes = false;   // of inputs, in the trace
  bool profile_memory = false;  // what each operation takes and gives back
};

/// All calls of one operation, CUDA kernel or scope (RECORD_USER_SCOPE). Times in microseconds.
/// Self: without the operations inside. CPU operations also carry the GPU time of their kernels.
struct OperatorRow {
  int64_t calls = 0;
  double cpu_us = 0, self_cpu_us = 0, cuda_us = 0, self_cuda_us = 0;
  int64_t cpu_bytes = 0, self_cpu_bytes = 0, cuda_bytes = 0, self_cuda_bytes = 0;
  bool is_kernel = false;
};
using OperatorRows = std::map<std::string, OperatorRow>;

/// Records the operations of this thread (and of its backward passes) by torch's profiler (Kineto).
/// One at a time in a process. Source: torch.profiler.
class OperatorProfiler {
 public:
  explicit OperatorProfiler(const OperatorProfileOptions& options) : options_(options) {}
  ~OperatorProfiler();  // drops what was recorded
  OperatorProfiler& operator=(OperatorProfiler&&) = delete;

  /// Sets the tracing up; the first operations afterwards are slower than usual.
  void prepare();
  void start();
  bool is_recording() const { return is_recording_; }
  /// Adds what was recorded to `rows`; writes it as a Chrome trace unless `trace` is "".
  /// Throws: as AtomicFile.
  void stop(OperatorRows& rows, const std::string& trace);

 private:
  OperatorProfileOptions options_;
  bool is_prepared_ = false, is_recording_ = false;
  std::optional<QuietLog> quiet_;
};

/// The table of torch.profiler's key_averages().table(). `sort_by` is one of operator_sort_keys().
/// CUDA columns are there when a row has CUDA time, those of memory when one has bytes.
std::string to_text(const OperatorRows& rows, const std::string& sort_by, int64_t row_limit);
const std::map<std::string, double (*)(const OperatorRow&)>& operator_sort_keys();

}  // namespace cytra::perf
