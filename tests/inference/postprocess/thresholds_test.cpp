#include "inference/postprocess/thresholds.h"

#include <cmath>

#include "base/error.h"
#include "tests/support/golden.h"

namespace cytra::inference {
namespace {

TEST(Thresholds, EqualScikitImage) {
  const test::Golden golden("thresholds");
  for (const test::GoldenCase& entry : golden.cases(50)) {
    const auto method = entry.options().get<std::string>("method");
    const at::Tensor image = entry.tensor("image");
    const bool is_flat = image.max().equal(image.min());  // the peer's answers vary: see below
    if (is_flat) continue;
    if (!entry.has("out")) {
      EXPECT_THROW(find_threshold(image, method), DataError) << entry.name;
      continue;
    }
    // Bins are found exactly; sums over all values are the peer's in float32.
    const double tolerance = method == "li" || method == "mean" ? 1e-5 : 1e-7;
    const auto expected = entry.tensor("out").item<double>();
    EXPECT_NEAR(find_threshold(image, method), expected, tolerance * std::abs(expected))
        << entry.name;
  }
}

TEST(Thresholds, OfOneValueIsThatValue) {
  for (const std::string& method : threshold_methods())
    EXPECT_EQ(find_threshold(at::full({3, 4}, 0.25), method), 0.25) << method;
}

TEST(Thresholds, SayWhereThereIsNone) {
  for (const std::string& method : threshold_methods()) {
    EXPECT_THROW(find_threshold(at::zeros({0, 3}), method), DataError) << method;
    EXPECT_THROW(find_threshold(at::tensor({0.0, 1.0, std::nan("")}), method), DataError) << method;
  }
}

}  // namespace
}  // namespace cytra::inference
