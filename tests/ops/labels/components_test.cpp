#include "ops/labels/components.h"

#include "tests/support/golden.h"
#include "tests/support/message_of.h"

namespace cytra::ops {
namespace {

at::Tensor random_mask(at::IntArrayRef shape, double share) {
  at::manual_seed(4);
  return at::rand(shape).lt(share);
}

TEST(Components, EqualScikitImageAndScipy) {
  const test::Golden golden("components");
  for (const test::GoldenCase& entry : golden.cases(40)) {
    const at::Tensor image = entry.tensor("image");
    for (const at::ScalarType type : {at::kByte, at::kInt, at::kFloat}) {
      const Components found =
          connected_components(image.to(type), entry.options().get<int64_t>("connectivity"));
      EXPECT_EQ(test::max_difference(found.labels, entry.tensor("out")), 0) << entry.name;
      EXPECT_EQ(found.labels.scalar_type(), at::kInt);
      const at::Tensor sizes = found.labels.flatten().bincount({}, found.count + 1);
      EXPECT_TRUE(at::tensor(found.sizes, at::kLong).equal(sizes)) << entry.name;
    }
  }
}

TEST(Components, OfAMaskAreThoseOfItsBytes) {
  const at::Tensor mask = random_mask({20, 30}, 0.5);
  const Components found = connected_components(mask, 0);
  EXPECT_TRUE(found.labels.equal(connected_components(mask.to(at::kByte), 2).labels));
  EXPECT_GT(found.count, 1);
}

TEST(Components, NanIsBackground) {
  const at::Tensor image = at::tensor({NAN, NAN, 2.F, 2.F, NAN, 2.F, 3.F, NAN}).view({2, 4});
  const Components found = connected_components(image, 1);
  EXPECT_EQ(found.count, 3);
  EXPECT_TRUE(found.labels.equal(at::tensor({0, 0, 1, 1, 0, 2, 3, 0}, at::kInt).view({2, 4})));
  EXPECT_EQ(found.sizes[0], 4);
}

TEST(Components, SayWhatDoesNotFit) {
  EXPECT_EQ(message_of<DataError>([] {
              connected_components(at::zeros({3, 3}), 3);
            }),
            "connectivity 3 in 2 dimensions, expected at most that");
  EXPECT_NE(
      message_of<DataError>([] { connected_components(at::zeros({3}), 1); }).find("1 spatial"),
      std::string::npos);
}

TEST(StitchedComponents, AreThoseOfTheWholeImage) {
  const test::Golden golden("components");
  for (const test::GoldenCase& entry : golden.cases(40)) {
    const at::Tensor image = entry.tensor("image");
    for (const int64_t rows : {1, 2, 5}) {
      StitchedComponents components(entry.options().get<int64_t>("connectivity"), image.dim());
      std::vector<at::Tensor> slabs;
      for (int64_t first = 0; first < image.size(0); first += rows)
        slabs.push_back(
            components.add(image.narrow(0, first, std::min(rows, image.size(0) - first))));
      const at::Tensor numbers = at::tensor(components.finish(), at::kInt);
      const at::Tensor labels = numbers.index({at::cat(slabs).to(at::kLong)});
      EXPECT_EQ(test::max_difference(labels, entry.tensor("out")), 0) << entry.name << " " << rows;
      EXPECT_EQ(components.count(), entry.tensor("out").max().item<int64_t>()) << entry.name;
    }
  }
}

TEST(StitchedComponents, SayWhatDoesNotFit) {
  StitchedComponents components(0, 2);
  components.add(at::ones({2, 5}));
  EXPECT_THROW(components.add(at::ones({2, 6})), DataError);
  EXPECT_THROW(components.add(at::ones({1, 2, 5})), DataError);
}

}  // namespace
}  // namespace cytra::ops
