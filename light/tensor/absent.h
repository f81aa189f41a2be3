#pragma once
// What this CPU-only torch does not have: accelerators with streams and graphs, autocast, a tracer,
// profilers. The sources ask for them by torch's names, and are told that there are none.
#include <cstdint>
#include <memory>

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

enum class RecordScope { FUNCTION, BACKWARD_FUNCTION, USER_SCOPE };
struct RecordFunction {
  explicit RecordFunction(RecordScope) {}
  bool isActive() const { return false; }
  void before(const char*) {}
  const char* name() const { return ""; }
};
struct ObserverContext {
  virtual ~ObserverContext() = default;
};
struct RecordFunctionCallback {
  template <class Begin, class End>
  RecordFunctionCallback(Begin, End) {}
  void scopes(std::initializer_list<RecordScope>) {}
};
inline uint64_t addThreadLocalCallback(const RecordFunctionCallback&) {
  return 0;
}
inline void removeCallback(uint64_t) {}

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

namespace torch::profiler::impl {
struct ProfilerStubs {
  bool enabled() const { return false; }
  void rangePush(const char*) const {}
  void rangePop() const {}
};
inline const ProfilerStubs* cudaStubs() {
  static const ProfilerStubs none;
  return &none;
}
}  // namespace torch::profiler::impl

inline int FLAGS_caffe2_log_level = 0;  // torch's own log
