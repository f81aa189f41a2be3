#include "data/loader/loader.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <set>
#include <thread>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/control_groups.h"
#include "base/error.h"
#include "config/composer.h"
#include "config/registry.h"
#include "data/datamodules/array_datamodule.h"
#include "tests/support/message_of.h"

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
  spec.transforms[0]->name = "Fake";
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

std::vector<double> rest(int64_t workers, int64_t first) {
  data::DataLoader loader(spec_of(53, workers, 2));
  return stream(loader, 4, first);
}

TEST(DataLoader, GoesOnFromAnyBatchWithAnyNumberOfWorkers) {
  const std::vector<double> whole = rest(0, 0);
  ASSERT_EQ(whole.size(), 106U);
  for (const int64_t first : {1, 5, 11, 17}) {
    const std::vector<double> expected(whole.begin() + first * 6, whole.end());
    for (const int64_t workers : {0, 1, 2, 7}) EXPECT_EQ(rest(workers, first), expected);
  }
}

TEST(DataLoader, LoadsTheNextEpochAhead) {
  for (const int64_t workers : {0, 3}) {
    data::DataLoader plain(spec_of(20, workers)), eager(spec_of(20, workers));
    for (const int64_t epoch : {0, 1, 2}) {
      std::vector<double> values;
      eager.start_epoch(epoch, 0, epoch < 2);
      while (const auto batch = eager.next()) {
        for (int64_t n = 0; n < batch->at("x").size(0); ++n)
          values.push_back(batch->at("x")[n][0][0][0].item<double>());
      }
      EXPECT_EQ(values, stream(plain, epoch));
    }
    EXPECT_EQ(stream(eager, 7), stream(plain, 7));  // not the one that was loaded ahead
    eager.start_epoch(8, 0, true);
    eager.next();
    EXPECT_EQ(stream(eager, 9), stream(plain, 9));  // given up in the middle
  }
}

TEST(DataLoader, NumbersItsBatchesAndStopsAtTheLimit) {
  auto spec = spec_of(20, 2);
  spec.limit = [](int64_t) { return 4; };
  data::DataLoader loader(std::move(spec));
  EXPECT_EQ(loader.size(), 4);
  loader.start_epoch(0, 1);
  for (const int64_t number : {1, 2, 3}) EXPECT_EQ(loader.next()->number, number);
  EXPECT_FALSE(loader.next());
}

TEST(DataLoader, GivesEveryImageOnceToOneOfSeveralProcesses) {
  std::multiset<int> seen;
  for (const int64_t rank : {0, 1, 2}) {
    auto spec = spec_of(20, 2);
    spec.rank = rank;
    spec.world_size = 3;
    data::DataLoader loader(std::move(spec));
    EXPECT_EQ(loader.size(), 3);  // 7 images: the first comes again
    for (const double value : stream(loader, 2)) seen.insert(static_cast<int>(value));
  }
  EXPECT_EQ(seen.size(), 21U);
  EXPECT_EQ(std::set<int>(seen.begin(), seen.end()).size(), 20U);
}

TEST(DataLoader, DropsOfSeveralProcessesWhatItDropsOfOne) {
  for (const int64_t rank : {0, 1}) {
    auto spec = spec_of(7, 1);
    spec.options.batch_size = 1;
    spec.options.drop_last = true;
    spec.rank = rank;
    spec.world_size = 2;
    EXPECT_EQ(data::DataLoader(std::move(spec)).size(), 3);  // as 7 images in batches of 2
  }
}

TEST(DataLoader, DrawsByWeight) {
  auto spec = spec_of(4, 2);
  for (std::size_t i = 0; i < 4; ++i) spec.items[i].weight = i == 2 ? 3 : i == 3 ? 1 : 0;
  spec.options.num_samples = 4000;
  data::DataLoader loader(std::move(spec));
  std::map<int, int> counts;
  std::set<double> values;
  for (const double value : stream(loader, 0)) {
    ++counts[static_cast<int>(value)];
    values.insert(value);
  }
  EXPECT_EQ(counts.size(), 2U);
  EXPECT_NEAR(counts[2], 3000, 110);  // 4 standard deviations
  EXPECT_GT(values.size(), 3990U);    // an image that comes again is transformed anew
}

TEST(DataLoader, LeavesOutOrReplacesWhatCannotBeLoaded) {
  for (const int64_t workers : {0, 3}) {
    auto spec = spec_of(20, workers);
    spec.options.on_error = "skip";
    for (const std::size_t i : {3, 7, 8}) spec.items[i].id = "bad";
    auto replaced = spec;
    data::DataLoader loader(std::move(spec));
    EXPECT_EQ(stream(loader, 0).size(), 17U);
    EXPECT_EQ(stream(loader, 1).size(), 17U);
    EXPECT_EQ(loader.stats().failed, 6);
    EXPECT_EQ(loader.stats().broken.at("bad"), "bad: can't be read (in Fake)");
    replaced.options.on_error = "replace";
    data::DataLoader other(std::move(replaced));
    const auto values = stream(other, 0);
    EXPECT_EQ(values.size(), 20U);
    EXPECT_EQ(values, stream(other, 0));
  }
}

TEST(DataLoader, ImagesThatDoNotFitTogetherAreAnErrorWhateverTheLuck) {
  auto spec = spec_of(6, 2);
  spec.options.on_error = "skip";
  struct Odd final : data::Transform {
    void apply(data::Sample& sample, Rng&) const override {
      if (sample.id == "4") sample.tensors["x"] = at::zeros({3, 8, 8});
    }
  };
  spec.transforms.push_back(std::make_shared<Odd>());
  data::DataLoader loader(std::move(spec));
  for (const int64_t epoch : {0, 1, 2}) EXPECT_THROW(stream(loader, epoch), DataError);
}

TEST(DataLoader, AnImageWithOtherChannelsIsOneThatCannotBeLoaded) {
  auto spec = spec_of(4, 2);
  spec.shuffle = false;
  struct OneChannel final : data::Transform {
    void apply(data::Sample& sample, Rng&) const override { data::expect_channels(sample, "x", 1); }
  };
  spec.items[2].tensors["x"] = at::zeros({3, 8, 8});
  spec.transforms = {std::make_shared<OneChannel>()};
  spec.transforms[0]->name = "Task";
  for (data::Sample& item : spec.items) {
    if (item.tensors.empty()) item.tensors["x"] = at::zeros({1, 8, 8});
  }
  auto skips = spec;
  skips.options.on_error = "skip";
  data::DataLoader loader(std::move(skips));
  loader.start_epoch(0);
  std::vector<std::string> ids;
  while (const auto batch = loader.next())
    ids.insert(ids.end(), batch->ids.begin(), batch->ids.end());
  EXPECT_EQ(ids, (std::vector<std::string>{"0", "1", "3"}));
  EXPECT_EQ(loader.stats().broken.at("2"),
            "2: 3 channels, the model expects 1 (set raw_im_channels, or choose some with "
            "LoadImaged's channel) (in Task)");
  data::DataLoader fails(std::move(spec));
  fails.start_epoch(0);
  EXPECT_THROW(fails.next(), DataError);
}

TEST(DataLoader, OptionsSetInCppAreChecked) {
  const auto error_of = [](void (*change)(data::LoaderOptions&)) {
    auto spec = spec_of(4, 0);
    change(spec.options);
    return message_of<ConfigError>([&] { data::DataLoader loader(std::move(spec)); });
  };
  EXPECT_EQ(error_of([](data::LoaderOptions& o) { o.collate = "nonsense"; }),
            "data.collate: expected one of stack, pad, list, got 'nonsense'.");
  EXPECT_EQ(error_of([](data::LoaderOptions& o) {
              o.prefetch_factor = 0;
            }).find("data.prefetch_factor: expected a value from 1"),
            0U);
  EXPECT_EQ(error_of([](data::LoaderOptions& o) {
              o.num_workers = -2;
            }).find("data.num_workers: expected a value from 0"),
            0U);
  data::LoaderOptions options;
  options.on_error = "ignore";
  EXPECT_THROW(data::ArrayDatamodule({}, options), ConfigError);
}

TEST(LoaderOptions, TakesTheKeysOfOtherLoaders) {
  const auto notes_of = [](const std::string& text) {
    config::Problems problems;
    config::Node node = config::parse_yaml(text, "a.yaml");
    config::set_paths(node, "data");
    config::read_options<data::LoaderOptions>(node, problems);
    problems.throw_if_any();
    return problems.notes();
  };
  EXPECT_TRUE(notes_of("{persistent_workers: true, shuffle: true, sampler: null, "
                       "multiprocessing_context: null, worker_init_fn: null}")
                  .empty());
  EXPECT_EQ(notes_of("{persistent_workers: false}"),
            (std::vector<std::string>{"data.persistent_workers: false has no effect here (workers "
                                      "always live as long as the training)"}));
  EXPECT_EQ(notes_of("{shuffle: false, cache_rate: 0.5, multiprocessing_context: spawn}").size(),
            3U);
}

TEST(LoaderOptions, AutoSharesTheProcessorsOut) {
  const auto options =
      config::parse<data::LoaderOptions>(config::parse_yaml("{num_workers: auto}", "a.yaml"));
  const int64_t half = available_processors() / 2;
  EXPECT_EQ(options.workers(), std::clamp<int64_t>(half, 2, 8));
  EXPECT_EQ(options.workers(1 << 20), 2);
  data::DataLoader automatic(spec_of(6, options.num_workers)), two(spec_of(6, 2));
  EXPECT_EQ(stream(automatic, 0), stream(two, 0));
  EXPECT_THROW(
      config::parse<data::LoaderOptions>(config::parse_yaml("{num_workers: -1}", "a.yaml")),
      ConfigError);
}

TEST(DataLoader, AutoIsNoBatchSize) {
  data::DataLoaderSpec spec = spec_of(4, 0);
  spec.options.batch_size = 0;
  EXPECT_THROW(data::DataLoader(std::move(spec)), ConfigError);
}

TEST(DataLoader, AnEpochWithoutAnyImageIsAnError) {
  auto spec = spec_of(6, 2);
  spec.options.on_error = "skip";
  for (data::Sample& item : spec.items) item.id = "bad";
  data::DataLoader loader(std::move(spec));
  EXPECT_THROW(stream(loader, 0), DataError);
}

TEST(DataLoader, ABatchOfWhichNothingIsLeftIsPassedOver) {
  auto spec = spec_of(9, 2);
  spec.shuffle = false;
  spec.options.on_error = "skip";
  for (const std::size_t i : {3, 4, 5}) spec.items[i].id = "bad";
  data::DataLoader loader(std::move(spec));
  loader.start_epoch(0);
  EXPECT_EQ(loader.next()->number, 0);
  EXPECT_EQ(loader.next()->number, 2);
  EXPECT_FALSE(loader.next());
}

/// Blocks until it is let go.
struct Gate final : data::Transform {
  void apply(data::Sample& sample, Rng&) const override {
    std::unique_lock lock(mutex);
    if (sample.id == held) opened.wait(lock, [&] { return is_open; });
  }
  void open() {
    const std::lock_guard lock(mutex);
    is_open = true;
    opened.notify_all();
  }
  std::string held = "4";
  mutable std::mutex mutex;
  mutable std::condition_variable opened;
  bool is_open = false;
};

data::DataLoaderSpec gated(const std::shared_ptr<Gate>& gate) {
  auto spec = spec_of(9, 2);
  gate->name = "Gate";
  spec.shuffle = false;
  spec.transforms.insert(spec.transforms.begin() + 1, gate);
  return spec;
}

TEST(DataLoader, ASlowImageHoldsUpNothingButItsBatch) {
  const auto gate = std::make_shared<Gate>();
  data::DataLoader loader(gated(gate));
  loader.start_epoch(0);
  EXPECT_EQ(loader.next()->number, 0);
  while (loader.stats().samples < 8) std::this_thread::yield();  // all others are loaded meanwhile
  EXPECT_FALSE(loader.is_ready());
  gate->open();
  EXPECT_EQ(loader.next()->number, 1);
  EXPECT_EQ(loader.next()->number, 2);
}

TEST(DataLoader, ATimeoutNamesImageAndTransform) {
  const auto gate = std::make_shared<Gate>();
  auto spec = gated(gate);
  spec.options.timeout = 0.2;
  data::DataLoader loader(std::move(spec));
  loader.start_epoch(0);
  loader.next();
  try {
    loader.next();
    FAIL();
  } catch (const DataError& error) {
    EXPECT_NE(std::string(error.what()).find("waiting for 4 (Gate, for "), std::string::npos)
        << error.what();
  }
  gate->open();
  EXPECT_EQ(loader.next()->number, 1);  // it came after all
}

TEST(DataLoader, AHangingReadIsLeftBehind) {
  const auto gate = std::make_shared<Gate>();
  const auto begin = std::chrono::steady_clock::now();
  {
    data::DataLoader loader(gated(gate));
    loader.start_epoch(0);
    loader.next();
  }
  const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begin;
  EXPECT_LT(waited.count(), 10);  // 2 s, and what a busy machine adds
  gate->open();
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

/// Holds up each image until the loader ends, and 5 ms more. Counts what it begins and ends.
struct Dawdle final : data::Transform {
  void apply(data::Sample&, Rng&) const override {
    ++begun;
    while (!is_ending) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    ++ended;
  }
  mutable std::atomic<int> begun{0}, ended{0};
  std::atomic<bool> is_ending{false};
};

// The images under way are waited for, those that wait for a worker are not begun.
TEST(DataLoader, EndsWhileBatchesAreUnderWay) {
  constexpr int kWorkers = 4, kImages = 600;
  for (int round = 0; round < 3; ++round) {
    const auto dawdle = std::make_shared<Dawdle>();
    auto spec = spec_of(kImages, kWorkers);
    spec.options.prefetch_factor = kImages;  // all wait for a worker
    spec.transforms.insert(spec.transforms.begin() + 1, dawdle);
    {
      data::DataLoader loader(std::move(spec));
      loader.start_epoch(0);
      while (dawdle->begun < kWorkers) std::this_thread::yield();
      dawdle->is_ending = true;
    }
    EXPECT_EQ(dawdle->ended, dawdle->begun);
    EXPECT_LT(dawdle->begun, kImages);
  }
}

}  // namespace
}  // namespace cytra
