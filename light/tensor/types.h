#pragma once
// The small types of c10 that the sources name: element types, devices, lists of sizes, numbers.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace c10 {

enum class ScalarType : int8_t {  // torch's numbers
  Byte = 0,
  Char = 1,
  Short = 2,
  Int = 3,
  Long = 4,
  Half = 5,
  Float = 6,
  Double = 7,
  Bool = 11,
  BFloat16 = 15,
  UInt16 = 27,
  UInt32 = 28,
  Undefined = 46
};
constexpr auto kByte = ScalarType::Byte, kChar = ScalarType::Char, kShort = ScalarType::Short,
               kInt = ScalarType::Int, kLong = ScalarType::Long, kHalf = ScalarType::Half,
               kFloat = ScalarType::Float, kDouble = ScalarType::Double, kBool = ScalarType::Bool,
               kBFloat16 = ScalarType::BFloat16, kUInt16 = ScalarType::UInt16,
               kUInt32 = ScalarType::UInt32;
const char* toString(ScalarType type);
int64_t elementSize(ScalarType type);
inline bool isFloatingType(ScalarType t) {
  return t == kFloat || t == kDouble || t == kHalf || t == kBFloat16;
}
inline bool isReducedFloatingType(ScalarType t) {
  return t == kHalf || t == kBFloat16;
}
inline bool isIntegralType(ScalarType t, bool with_bool) {
  return !isFloatingType(t) && (with_bool || t != kBool);
}

struct BFloat16 {
  uint16_t x = 0;
  BFloat16() = default;
  BFloat16(float value);
  operator float() const {
    const uint32_t bits = static_cast<uint32_t>(x) << 16;
    float value;
    std::memcpy(&value, &bits, 4);
    return value;
  }
};
struct Half {
  uint16_t x = 0;
  Half() = default;
  Half(float value);
  operator float() const;
};

enum class DeviceType : int8_t { CPU = 0, CUDA = 1 };
constexpr auto kCPU = DeviceType::CPU, kCUDA = DeviceType::CUDA;
using DeviceIndex = int8_t;
std::string DeviceTypeName(DeviceType type, bool lower = false);
struct Device {
  Device(DeviceType type, DeviceIndex index = -1) : type_(type), index_(index) {}
  explicit Device(const std::string& text);
  DeviceType type() const { return type_; }
  DeviceIndex index() const { return index_; }
  bool has_index() const { return index_ >= 0; }
  bool is_cpu() const { return type_ == kCPU; }
  bool is_cuda() const { return type_ == kCUDA; }
  std::string str() const { return DeviceTypeName(type_, true); }
  bool operator==(const Device& other) const = default;

 private:
  DeviceType type_;
  DeviceIndex index_;
};

template <class T>
class ArrayRef {
 public:
  using value_type = T;
  using const_iterator = const T*;
  ArrayRef() = default;
  ArrayRef(const T& one) : data_(&one), size_(1) {}
  ArrayRef(const T* data, std::size_t size) : data_(data), size_(size) {}
  ArrayRef(const T* begin, const T* end)
      : data_(begin), size_(static_cast<std::size_t>(end - begin)) {}
  ArrayRef(const std::vector<T>& list) : data_(list.data()), size_(list.size()) {}
  template <std::size_t N>
  ArrayRef(const std::array<T, N>& list) : data_(list.data()), size_(N) {}
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winit-list-lifetime"
  ArrayRef(const std::initializer_list<T>& list) : data_(list.begin()), size_(list.size()) {}
#pragma GCC diagnostic pop
  const T* begin() const {
    return data_;
  }
  const T* end() const {
    return data_ + size_;
  }
  std::size_t size() const {
    return size_;
  }
  bool empty() const {
    return size_ == 0;
  }
  const T* data() const {
    return data_;
  }
  const T& operator[](std::size_t i) const {
    return data_[i];
  }
  const T& at(std::size_t i) const {
    if (i >= size_) throw std::out_of_range("ArrayRef");
    return data_[i];
  }
  const T& front() const {
    return at(0);
  }
  const T& back() const {
    return at(size_ - 1);
  }
  ArrayRef slice(std::size_t from) const {
    return {data_ + from, size_ - from};
  }
  ArrayRef slice(std::size_t from, std::size_t count) const {
    return {data_ + from, count};
  }
  std::vector<T> vec() const {
    return {begin(), end()};
  }
  bool equals(ArrayRef other) const {
    return std::equal(begin(), end(), other.begin(), other.end());
  }
  friend bool operator==(ArrayRef a, ArrayRef b) {
    return a.equals(b);
  }

 private:
  const T* data_ = nullptr;
  std::size_t size_ = 0;
};
using IntArrayRef = ArrayRef<int64_t>;
inline int64_t multiply_integers(IntArrayRef sizes) {
  int64_t product = 1;
  for (const int64_t size : sizes) product *= size;
  return product;
}

/// A number that takes part in an operation: whole, real, or a truth value.
struct Scalar {
  ScalarType type = kLong;
  double real = 0;
  int64_t whole = 0;
  Scalar() = default;
  template <class T>
  requires std::is_arithmetic_v<T> Scalar(T value)
      : type(std::is_same_v<T, bool>       ? kBool
             : std::is_floating_point_v<T> ? kDouble
                                           : kLong),
        real(static_cast<double>(value)),
        whole(std::is_floating_point_v<T> ? 0 : static_cast<int64_t>(value)) {}
  template <class T>
  T to() const {
    if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>)
      return T(static_cast<float>(real));
    else
      return type == kDouble ? static_cast<T>(real) : static_cast<T>(whole);
  }
};

enum class MemoryFormat { Contiguous, Preserve, ChannelsLast, ChannelsLast3d };

/// An operation that was called wrongly: a mistake in the program.
struct Error : std::runtime_error {
  using runtime_error::runtime_error;
  const char* what_without_backtrace() const { return what(); }
};
struct OutOfMemoryError : Error {
  using Error::Error;
};

struct TensorOptions {
  ScalarType type = kFloat;
  bool has_type = false;
  TensorOptions() = default;
  TensorOptions(ScalarType of) : type(of), has_type(true) {}
  TensorOptions(Device) {}
  TensorOptions(DeviceType) {}
  TensorOptions dtype(ScalarType of) const { return {of}; }
  TensorOptions device(Device) const { return *this; }
  TensorOptions pinned_memory(bool) const { return *this; }
  ScalarType scalar_type() const { return type; }
};

struct InferenceMode {
  explicit InferenceMode(bool = true) {}
  ~InferenceMode() {}  // else a variable of it would be unused
};

/// Reports what tensors allocate (bytes > 0) and free in this thread.
struct MemoryReportingInfoBase {
  virtual ~MemoryReportingInfoBase() = default;
  virtual void reportMemoryUsage(
      void* address, int64_t bytes, std::size_t allocated, std::size_t reserved, Device device) = 0;
  virtual bool memoryProfilingEnabled() const = 0;
};
enum class DebugInfoKind { PROFILER_STATE };
class DebugInfoGuard {
 public:
  DebugInfoGuard(DebugInfoKind, std::shared_ptr<MemoryReportingInfoBase> reporter);
  ~DebugInfoGuard();
  DebugInfoGuard& operator=(DebugInfoGuard&&) = delete;

 private:
  std::shared_ptr<MemoryReportingInfoBase> before_;
};

}  // namespace c10

namespace at {
using namespace c10;

struct NoGradGuard {
  NoGradGuard() {}
  ~NoGradGuard() {}
};

int get_num_threads();
void set_num_threads(int count);
std::string get_cpu_capability();
namespace internal {
inline void lazy_init_num_threads() {}
}  // namespace internal
/// Calls work(begin, end) for parts of a range, side by side where it is longer than `grain`.
void parallel_for(int64_t begin,
                  int64_t end,
                  int64_t grain,
                  const std::function<void(int64_t begin, int64_t end)>& work);

}  // namespace at
