#include "device/fast_precision.h"

#include <ATen/Context.h>
#include <gtest/gtest.h>

namespace cytra::device {
namespace {

TEST(FastPrecision, TensorCoresAreOfGpus) {
  const c10::Device gpu(c10::kCUDA, 0);
  for (const char* precision : {"16-mixed", "bf16-mixed", "16-true", "bf16-true"}) {
    EXPECT_TRUE(uses_tensor_cores(precision, gpu)) << precision;
    EXPECT_FALSE(uses_tensor_cores(precision, c10::kCPU)) << precision;
  }
  EXPECT_FALSE(uses_tensor_cores("64-true", gpu));
  at::Context& context = at::globalContext();
  const bool allowed = context.allowTF32CuDNN();
  context.setAllowTF32CuDNN(false);
  EXPECT_FALSE(uses_tensor_cores("32", gpu));
  context.setAllowTF32CuDNN(allowed);
  EXPECT_FALSE(uses_tensor_cores("32", c10::kCPU));
}

TEST(FastPrecision, OneWarningNamesAFasterOne) {
  for (const char* precision : {"16-mixed", "16-true", "bf16-mixed", "32"}) {
    testing::internal::CaptureStderr();
    warn_of_slow_precision(precision, c10::kCPU);
    const std::string text = testing::internal::GetCapturedStderr();
    const std::string why = slow_precision(precision, c10::kCPU);
    const std::string begin = std::string("warning: trainer.precision=") + precision + ": slow, ";
    EXPECT_EQ(text.starts_with(begin + why + "; trainer.precision="), !why.empty()) << text;
    EXPECT_EQ(text.empty(), why.empty());
  }
  EXPECT_EQ(slow_precision("32", c10::kCPU), "");
}

}  // namespace
}  // namespace cytra::device
