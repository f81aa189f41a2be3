#include "device/backend.h"

#include <algorithm>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "device/device.h"
#include "device/memory.h"

namespace cytra::device {
namespace {

TEST(Backend, ACpuIsNoAccelerator) {
  const c10::Device cpu = c10::kCPU;
  EXPECT_FALSE(is_accelerator(cpu));
  EXPECT_FALSE(has_own_memory(cpu));
  EXPECT_FALSE(pins_memory(cpu));
  EXPECT_FALSE(has_streams(cpu));
  EXPECT_FALSE(has_graphs(cpu));
  const Backend& backend = backend_of(cpu);
  EXPECT_EQ(backend.current(), cpu);
  EXPECT_EQ(backend.count(), 0) << "processes share it";
  EXPECT_NE(backend.why_no_tf32(cpu), "");
  EXPECT_FALSE(backend.tf32().products || backend.tf32().convolutions);
  EXPECT_EQ(backend.gauge(cpu), nullptr);
  std::string problem;
  EXPECT_EQ(find_kernel(cpu, "cytra_cuda_norm", &problem), nullptr);
  EXPECT_NE(problem, "");
}

TEST(Backend, EveryAcceleratorIsKnownByItsDeviceAndByItsName) {
  const std::vector<std::string> choices = accelerator_choices();
  for (const Backend* backend : accelerators()) {
    EXPECT_EQ(&backend_of(backend->type), backend);
    EXPECT_NE(std::find(choices.begin(), choices.end(), backend->name), choices.end());
    EXPECT_EQ(c10::DeviceTypeName(backend->type, /*lower_case=*/true), backend->name);
    EXPECT_TRUE(backend->traits.is_accelerator);
    EXPECT_NE(backend->kernels(), nullptr);
  }
  EXPECT_FALSE(is_accelerator(c10::kMeta));
  EXPECT_THROW(backend_of(c10::kMeta), ConfigError);
}

TEST(Backend, OnACpuValuesStayWhatTheyAre) {
  const at::Tensor values = at::arange(6).view({2, 3});
  EXPECT_TRUE(to_device(values, c10::kCPU).is_same(values));
  EXPECT_TRUE(to_host(values).is_same(values));
}

}  // namespace
}  // namespace cytra::device
