// The line of a device; NVML and the driver are stubs, each case in a process of its own.
#include "perf/device_usage.h"

#include <cstdlib>

#include <dlfcn.h>
#include <gtest/gtest.h>

namespace cytra::perf {
namespace {

[[noreturn]] void tell_of_gpu(int index, bool has_nvml = true) {
  setenv("STUB_CUDA", "0 2 13000", 1);
  for (const char* library : {CYTRA_STUB_DRIVER, has_nvml ? CYTRA_STUB_NVML : CYTRA_STUB_DRIVER}) {
    if (dlopen(library, RTLD_NOW | RTLD_GLOBAL) == nullptr) std::_Exit(3);
  }
  UsageMeter meter({c10::kCUDA, static_cast<c10::DeviceIndex>(index)});
  std::fprintf(stderr, "%s\n", meter.read().text().c_str());
  std::_Exit(0);
}

TEST(DeviceUsage, TellsWhatNvidiaSmiWould) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (const char* library : {"libcuda.so.1", "libnvidia-ml.so.1"}) {
    if (dlopen(library, RTLD_LAZY | RTLD_NOLOAD) != nullptr) GTEST_SKIP() << library << " is there";
  }
  const auto done = ::testing::ExitedWithCode(0);
  EXPECT_EXIT(tell_of_gpu(1), done, "^GPU 87 % 10.0 GB of 80.0 GB 305 W 61 C");
  EXPECT_EXIT(tell_of_gpu(0), done, "^CPU ") << "NVML does not know that one";
  EXPECT_EXIT(tell_of_gpu(1, /*has_nvml=*/false), done, "^CPU ");
  setenv("STUB_NVML", "mig", 1);
  EXPECT_EXIT(tell_of_gpu(1), done, "^GPU 10.0 GB of 80.0 GB 305 W 61 C");
  unsetenv("STUB_NVML");
}

TEST(DeviceUsage, TellsOfThisProcessOnACpu) {
  UsageMeter meter(c10::kCPU);
  volatile double sum = 0;
  const std::clock_t begin = std::clock();
  while (std::clock() - begin < CLOCKS_PER_SEC / 50) sum = sum + 1;
  const DeviceUsage usage = meter.read();
  EXPECT_GT(usage.cores_busy, 0);
  EXPECT_GT(usage.resident_bytes, 1 << 20);
  EXPECT_FALSE(usage.gpu);
  if (usage.ipc) {
    EXPECT_GT(*usage.ipc, 0.01);
    EXPECT_LT(*usage.ipc, 16);
  }
  DeviceUsage known;
  known.cores_busy = 1.94;
  known.resident_bytes = 812000000;
  EXPECT_EQ(known.text(), "CPU 1.9 cores 812.0 MB");
  known.ipc = 1.433;
  EXPECT_EQ(known.text(), "CPU 1.9 cores 812.0 MB 1.43 IPC");
}

}  // namespace
}  // namespace cytra::perf
