#include "perf/roofline.h"

#include <gtest/gtest.h>

namespace cytra::perf {
namespace {

TEST(Roofline, MeasuresWhatIsAskedFor) {
  const Roofline roofline = measure_roofline(c10::kCPU, {"fp32", "fp64"});
  ASSERT_EQ(roofline.flops_per_s.size(), 2U);
  // Any processor of this century, and less than any to come.
  for (const auto& [name, peak] : roofline.flops_per_s) {
    EXPECT_GT(peak, 1e7) << name;
    EXPECT_LT(peak, 1e16) << name;
  }
  EXPECT_GT(roofline.bytes_per_s, 1e7);
  EXPECT_LT(roofline.bytes_per_s, 1e14);
}

}  // namespace
}  // namespace cytra::perf
