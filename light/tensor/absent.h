#pragma once
// What this CPU-only torch does not have: accelerators with streams and graphs, autocast, a tracer,
// profilers. The sources ask for them by torch's names, and are told that there are none.
#include <cstdint>

#include "tensor.h"

namespace c10 {

struct Stream {
  bool operator==(const Stream&) const = default;
  void synchronize() const {}
};
struct StreamGuard {
  explicit StreamGuard(const Stream&) {}
};
struct Event {
  explicit Event(DeviceType) {}
  void record(const Stream&) {}
  void block(const Stream&) {}
  bool query() const { return true; }
  void synchronize() {}
};
namespace impl {
struct VirtualGuardImpl {
  explicit VirtualGuardImpl(DeviceType) {}
  Stream getStream(Device) const { return {}; }
  Stream getStreamFromGlobalPool(Device, bool) const { return {}; }
  Device getDevice() const { return kCPU; }
};
}  // namespace impl

}  // namespace c10

namespace at {

struct Context {
  void setDeterministicAlgorithms(bool, bool) {}
  void setDeterministicCuDNN(bool) {}
  void setDeterministicFillUninitializedMemory(bool) {}
  void setFloat32MatmulPrecision(const std::string&) {}
};
inline Context& globalContext() {
  static Context context;
  return context;
}
namespace autocast {
inline bool is_autocast_enabled(DeviceType) {
  return false;
}
inline ScalarType get_autocast_dtype(DeviceType) {
  return kFloat;
}
inline void set_autocast_enabled(DeviceType, bool) {}
inline void set_autocast_dtype(DeviceType, ScalarType) {}
inline int increment_nesting() {
  return 1;
}
inline int decrement_nesting() {
  return 0;
}
inline void clear_cache() {}
}  // namespace autocast
namespace tracer::impl {
inline bool is_dispatch_enabled() {
  return false;
}
}  // namespace tracer::impl

inline void manual_seed(uint64_t) {}
inline Tensor dropout(const Tensor& x, double, bool) {
  return x;
}
inline Tensor feature_dropout(const Tensor& x, double, bool) {
  return x;
}
}  // namespace at
namespace torch::nn {
/// A network, of which there are none.
class Module {
 public:
  virtual ~Module() = default;
  bool is_training() const { return false; }
};
}  // namespace torch::nn
