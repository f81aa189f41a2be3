#include <algorithm>
#include <cmath>
#include <exception>
#include <mutex>
#include <utility>

#include <omp.h>

#include "walk.h"

namespace c10 {

const char* toString(ScalarType type) {
  constexpr std::pair<ScalarType, const char*> kNames[] = {{kByte, "Byte"},
                                                           {kChar, "Char"},
                                                           {kShort, "Short"},
                                                           {kInt, "Int"},
                                                           {kLong, "Long"},
                                                           {kHalf, "Half"},
                                                           {kFloat, "Float"},
                                                           {kDouble, "Double"},
                                                           {kBool, "Bool"},
                                                           {kBFloat16, "BFloat16"},
                                                           {kUInt16, "UInt16"},
                                                           {kUInt32, "UInt32"}};
  for (const auto& [own, name] : kNames)
    if (own == type) return name;
  return "Undefined";
}

int64_t elementSize(ScalarType type) {
  return at::with_any_type(type, [](auto value) { return static_cast<int64_t>(sizeof value); });
}

BFloat16::BFloat16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  x = std::isnan(value) ? 0x7FC0 : static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

Half::operator float() const {
  const int exponent = x >> 10 & 31, fraction = x & 1023;
  const float sign = (x & 0x8000) != 0 ? -1.F : 1.F;
  if (exponent == 31) return fraction == 0 ? sign * INFINITY : NAN;
  return sign * (exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                               : std::ldexp(static_cast<float>(fraction + 1024), exponent - 25));
}
Half::Half(float value) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const float size = std::fabs(value);
  if (std::isnan(value)) {
    x = 0x7E00;
  } else if (size >= 65520) {
    x = sign | 0x7C00;
  } else if (size < 6.103515625e-5F) {
    x = sign | static_cast<uint16_t>(std::nearbyint(std::ldexp(size, 24)));
  } else {
    int exponent = 0;
    std::frexp(size, &exponent);
    const auto rounded = static_cast<int>(std::nearbyint(std::ldexp(size, 11 - exponent)));
    x = sign | static_cast<uint16_t>(((exponent + 13) << 10) + rounded);
  }
}

std::string DeviceTypeName(DeviceType type, bool lower) {
  if (type == kCPU) return lower ? "cpu" : "CPU";
  return lower ? "cuda" : "CUDA";
}

Device::Device(const std::string& text) : type_(kCPU), index_(-1) {
  if (text.rfind("cuda", 0) == 0)
    type_ = kCUDA;
  else if (text != "cpu" && text != "cpu:0")
    throw Error("a device of another kind: " + text);
}

thread_local std::shared_ptr<MemoryReportingInfoBase> memory_reporter;

DebugInfoGuard::DebugInfoGuard(DebugInfoKind, std::shared_ptr<MemoryReportingInfoBase> reporter)
    : before_(std::exchange(memory_reporter, std::move(reporter))) {}
DebugInfoGuard::~DebugInfoGuard() {
  memory_reporter = std::move(before_);
}

}  // namespace c10

namespace at {

int get_num_threads() {
  return omp_get_max_threads();
}
void set_num_threads(int count) {
  omp_set_num_threads(count);
}

std::string get_cpu_capability() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const char* asked = std::getenv("ATEN_CPU_CAPABILITY");
  const std::string most = asked == nullptr ? "avx512" : asked;
  const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool has_avx512 = has_avx2 && __builtin_cpu_supports("avx512vl") &&
                          __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq");
  if (has_avx512 && most.rfind("avx512", 0) == 0) return "AVX512";
  if (has_avx2 && most != "default") return "AVX2";
#endif
  return "NO AVX";
}

void parallel_for(int64_t begin,
                  int64_t end,
                  int64_t grain,
                  const std::function<void(int64_t begin, int64_t end)>& work) {
  if (begin >= end) return;
  const int64_t parts =
      (end - begin + std::max<int64_t>(1, grain) - 1) / std::max<int64_t>(1, grain);
  const auto threads = static_cast<int>(std::min<int64_t>(omp_get_max_threads(), parts));
  if (threads <= 1 || omp_in_parallel() != 0) return work(begin, end);
  std::exception_ptr failed;
  std::mutex mutex;
#pragma omp parallel num_threads(threads)
  {
    const int64_t count = omp_get_num_threads(), number = omp_get_thread_num();
    const int64_t length = (end - begin + count - 1) / count;
    const int64_t from = begin + number * length, to = std::min(end, from + length);
    try {
      if (from < to) work(from, to);
    } catch (...) {
      const std::lock_guard lock(mutex);
      failed = std::current_exception();
    }
  }
  if (failed) std::rethrow_exception(failed);
}

}  // namespace at
