#pragma once
// The interface to devices: all that the program needs of a kind of device. The CPU is one kind
// (cpu.cpp), CUDA another (cuda.cpp); a further one needs a source like these, and a line in
// backend.cpp.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

namespace cytra::device {

struct PerformanceOptions;

/// The abilities of a kind of device; all false on a CPU.
struct Traits {
  bool is_accelerator = false;       // computes while the host goes on
  bool has_own_memory = false;       // torch allocates it, and counts it for this process only
  bool pins_memory = false;          // copies from page-locked memory are faster, and asynchronous
  bool has_streams = false;          // it can copy and compute at the same time
  bool has_graphs = false;           // work can be recorded and replayed (CUDA graphs)
  bool has_tf32 = false;             // float32 products with 10 bits can be allowed and forbidden
  bool searches_algorithms = false;  // its library can try its convolutions for each new shape
};

/// Why there is no device of a kind; without a text there is one.
struct Absence {
  std::string text;
  bool is_expected = true;  // there is no such hardware; false: there is some that can't be used
};

/// Whether float32 is multiplied with 10 bits.
struct Tf32 {
  bool products = false, convolutions = false;
};

/// The usage of a device; values that it does not report (parts of a GPU: MIG) are absent.
struct GpuUsage {
  std::optional<double> percent;  // of the time in which a kernel ran, in the last second or less
  std::optional<int64_t> used_bytes, total_bytes;  // of all processes
  std::optional<double> power_w, temperature_c;
};
class Gauge {
 public:
  virtual ~Gauge() = default;
  virtual GpuUsage usage() const = 0;
};

/// A kind of device. Memory is in bytes.
class Backend {
 public:
  Backend(c10::DeviceType of, const char* kind, Traits what) : type(of), name(kind), traits(what) {}
  virtual ~Backend() = default;
  const c10::DeviceType type;
  const char* const name;  // its name in trainer.accelerator, and in torch: "cpu", "cuda"
  const Traits traits;

  /// Finds out whether there is such a device, first loading its libraries where there may be one.
  virtual Absence find() const { return {}; }
  /// The current device of this thread. Several processes of a machine use one each.
  virtual c10::Device current() const = 0;
  virtual void set_current(c10::Device /*device*/) const {}
  /// The devices that the process sees; 0 for a kind that processes share.
  virtual int64_t count() const { return 0; }
  /// The device for people: "cuda:0 (NVIDIA H100)".
  virtual std::string describe(c10::Device device) const = 0;
  virtual void synchronize(c10::Device /*device*/) const {}

  virtual int64_t peak_memory(c10::Device device) const = 0;
  virtual int64_t used_memory(c10::Device device) const = 0;
  virtual int64_t free_memory(c10::Device device) const = 0;
  virtual void reset_peak_memory(c10::Device device) const = 0;
  virtual void empty_cache(c10::Device device) const = 0;
  /// Measures the device's usage; null where the driver does not report it.
  virtual std::unique_ptr<Gauge> gauge(c10::Device /*device*/) const { return nullptr; }

  /// Sets the switches of the kind's libraries. Returns false where it has none.
  virtual bool apply(const PerformanceOptions& /*options*/) const { return false; }
  virtual Tf32 tf32() const { return {}; }
  virtual void set_tf32(Tf32 /*wanted*/) const {}
  /// Why this device can't use TF32; "" where it can.
  virtual std::string why_no_tf32(c10::Device device) const = 0;
  /// Why products of this type, float16 or bfloat16, are slow on the device; "" where they are
  /// fast.
  virtual std::string why_slow(c10::ScalarType type, c10::Device device) const = 0;
  /// Whether convolutions in this type run on tensor cores, float32 may do so by TF32.
  virtual bool has_tensor_cores(c10::ScalarType /*type*/, c10::Device /*device*/) const {
    return false;
  }
  /// The precision that is fast on each device of the kind.
  virtual const char* fast_precision() const { return "32"; }
  /// The file of our kernels for the kind, beside libcytra.so; null: they are in libcytra.so.
  virtual const char* kernels() const { return nullptr; }
};

const Backend& cpu_backend();
const Backend& cuda_backend();
/// All kinds except the CPU, in the order in which "auto" looks for them.
const std::vector<const Backend*>& accelerators();
/// Null for a kind that has none, as torch's meta.
const Backend* find_backend(c10::Device device);
/// Throws: ConfigError for a kind that has none.
const Backend& backend_of(c10::Device device);

inline Traits traits_of(c10::Device device) {
  const Backend* backend = find_backend(device);
  return backend == nullptr ? Traits() : backend->traits;
}
inline bool is_accelerator(c10::Device device) {
  return traits_of(device).is_accelerator;
}
inline bool has_own_memory(c10::Device device) {
  return traits_of(device).has_own_memory;
}
inline bool pins_memory(c10::Device device) {
  return traits_of(device).pins_memory;
}
inline bool has_streams(c10::Device device) {
  return traits_of(device).has_streams;
}
inline bool has_graphs(c10::Device device) {
  return traits_of(device).has_graphs;
}

/// A function of the library of kernels for this accelerator; null where there is none: `problem`
/// then says why. A process computes on one kind of accelerator, so callers keep what they found.
void* find_kernel(c10::Device device, const char* name, std::string* problem = nullptr);
template <class Function>
Function kernel(c10::Device device, const char* name, std::string* problem = nullptr) {
  return reinterpret_cast<Function>(find_kernel(device, name, problem));
}

}  // namespace cytra::device
