#include "data/loader.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "config/registry.h"

namespace cytra {
namespace {

/// Makes a tensor of the sample's id, so no files are needed; fails on the id "bad".
struct Fake final : data::Transform {
  void apply(data::Sample& sample, Rng&) const override {
    if (sample.id == "bad") throw DataError("bad: can't be read");
    sample.tensors["x"] = at::full({1, 8, 8}, std::stod(sample.id));
  }
};
/// Adds noise, so that the stream shows which generator was used.
struct Noise final : data::Transform {
  explicit Noise(int64_t samples) : samples(samples) {}
  bool is_random() const override { return true; }
  int64_t num_samples() const override { return samples; }
  void apply(data::Sample& sample, Rng& rng) const override {
    sample.tensors["x"] = sample.tensors["x"] + rng.uniform();
  }
  int64_t samples;
};

data::DataLoaderSpec spec_of(int64_t items, int64_t workers, int64_t draws = 1) {
  data::DataLoaderSpec spec;
  for (int64_t i = 0; i < items; ++i) {
    data::Sample sample;
    sample.id = std::to_string(i);
    spec.items.push_back(sample);
  }
  spec.transforms = {std::make_shared<Fake>(), std::make_shared<Noise>(draws)};
  spec.options.batch_size = 3;
  spec.options.num_workers = workers;
  spec.seed = 11;
  spec.shuffle = true;
  return spec;
}

std::vector<double> stream(data::DataLoader& loader, int64_t epoch, int64_t first = 0) {
  std::vector<double> values;
  loader.start_epoch(epoch, first);
  while (const auto batch = loader.next()) {
    const at::Tensor& x = batch->at("x");
    for (int64_t n = 0; n < x.size(0); ++n) values.push_back(x[n][0][0][0].item<double>());
  }
  return values;
}

TEST(DataLoader, GivesTheSameBatchesWhateverTheWorkers) {
  data::DataLoader none(spec_of(20, 0)), one(spec_of(20, 1)), seven(spec_of(20, 7));
  for (const int64_t epoch : {0, 1, 5}) {
    const auto expected = stream(none, epoch);
    EXPECT_EQ(expected.size(), 20U);
    EXPECT_EQ(stream(one, epoch), expected);
    EXPECT_EQ(stream(seven, epoch), expected);
  }
  EXPECT_NE(stream(none, 0), stream(none, 1));
}

TEST(DataLoader, ResumesInTheMiddleOfAnEpoch) {
  data::DataLoader loader(spec_of(20, 2)), other(spec_of(20, 5));
  const auto whole = stream(loader, 3);
  const auto rest = stream(other, 3, 4);  // 4 batches of 3 are done
  EXPECT_EQ(rest, std::vector<double>(whole.begin() + 12, whole.end()));
}

TEST(DataLoader, DrawsSeveralSamplesPerImage) {
  data::DataLoader loader(spec_of(4, 2, 5));
  EXPECT_EQ(loader.size(), 2);
  const auto values = stream(loader, 0);
  EXPECT_EQ(values.size(), 20U);
  EXPECT_NE(values[0], values[1]);
  EXPECT_EQ(std::floor(values[0]), std::floor(values[4]));  // of one image
}

TEST(DataLoader, DropsTheShortBatchWhenAsked) {
  auto spec = spec_of(20, 2);
  spec.options.drop_last = true;
  data::DataLoader loader(std::move(spec));
  EXPECT_EQ(loader.size(), 6);
  EXPECT_EQ(stream(loader, 0).size(), 18U);
}

TEST(DataLoader, RethrowsAndCanBeUsedAfter) {
  for (const int64_t workers : {0, 2}) {
    auto spec = spec_of(7, workers);
    spec.items[3].id = "bad";
    data::DataLoader loader(std::move(spec));
    EXPECT_THROW(stream(loader, 0), DataError);
    EXPECT_THROW(stream(loader, 1), DataError);  // no hang, no other error
  }
}

TEST(DataLoader, EndsWhileBatchesAreUnderWay) {
  for (int i = 0; i < 20; ++i) {
    data::DataLoader loader(spec_of(200, 4));
    loader.start_epoch(0);
    loader.next();
  }
}

TEST(Collate, NamesTheSampleThatDiffers) {
  data::Sample a, b;
  a.id = "a";
  b.id = "b";
  a.tensors["x"] = at::zeros({1, 4, 4});
  b.tensors["x"] = at::zeros({1, 4, 5});
  try {
    data::collate({a, b}, false);
    FAIL();
  } catch (const DataError& error) {
    EXPECT_NE(std::string(error.what()).find("b: 'x'"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace cytra
