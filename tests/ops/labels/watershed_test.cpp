#include "ops/labels/watershed.h"

#include "base/error.h"
#include "tests/support/golden.h"

namespace cytra::ops {
namespace {

TEST(Watershed, EqualsScikitImageTiesToo) {
  const test::Golden golden("watershed");
  int64_t seen = 0;
  for (const test::GoldenCase& entry : golden.cases(60)) {
    if (entry.node.get<std::string>("what") != "watershed") continue;
    const at::Tensor mask = entry.has("mask") ? entry.tensor("mask") : at::Tensor();
    const at::Tensor found = watershed(entry.tensor("image"),
                                       entry.tensor("markers").to(at::kInt),
                                       mask,
                                       entry.options().get<int64_t>("connectivity"));
    EXPECT_EQ(test::max_difference(found, entry.tensor("out")), 0) << entry.name;
    ++seen;
  }
  EXPECT_GE(seen, 20);
}

TEST(PeakLocalMax, EqualsScikitImage) {
  const test::Golden golden("watershed");
  int64_t seen = 0;
  for (const test::GoldenCase& entry : golden.cases(60)) {
    if (entry.node.get<std::string>("what") != "peaks") continue;
    PeakOptions options;
    options.min_distance = entry.options().get<int64_t>("min_distance");
    if (entry.has("labels")) options.labels = entry.tensor("labels").to(at::kInt);
    if (entry.options().find_direct("threshold_abs") != nullptr)
      options.threshold_abs = entry.options().get<double>("threshold_abs");
    const std::vector<int64_t> found = peak_local_max(entry.tensor("image"), options);
    EXPECT_TRUE(at::tensor(found, at::kLong).equal(entry.tensor("out").to(at::kLong)))
        << entry.name;
    ++seen;
  }
  EXPECT_GE(seen, 40);
}

TEST(Watershed, SaysWhatDoesNotFit) {
  const at::Tensor image = at::zeros({4, 5});
  EXPECT_THROW(watershed(image, at::zeros({4, 4}, at::kInt)), DataError);
  EXPECT_THROW(watershed(image, at::zeros({4, 5}, at::kInt), at::ones({5, 5})), DataError);
  EXPECT_THROW(peak_local_max(image, {1, at::zeros({4, 4}, at::kInt), {}}), DataError);
  EXPECT_TRUE(peak_local_max(image).empty()) << "all of an image is no peak";
  EXPECT_EQ(watershed(image, at::zeros({4, 5}, at::kInt)).count_nonzero().item<int64_t>(), 0);
}

}  // namespace
}  // namespace cytra::ops
