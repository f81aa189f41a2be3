#include "data/loader/cache.h"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"
#include "data/loader/pipeline.h"
#include "tests/support/tmp_dir.h"

namespace cytra {
namespace {

namespace fs = std::filesystem;

data::CacheEntry entry_of(double value, int64_t side = 8) {
  data::CacheEntry entry;
  entry.tensors["image"] = at::full({1, side, side}, value);
  entry.geometries["raw"].spacing_um = {0, 0.25, 1.0 / 3};
  entry.geometries["raw"].affine[3] = -1e-7;
  return entry;
}

double value_of(const std::shared_ptr<const data::CacheEntry>& entry) {
  const at::Tensor& image = entry->tensors.at("image");
  EXPECT_TRUE(image.eq(image.flatten()[0].to(image.scalar_type())).all().item<bool>());
  return image.flatten()[0].to(at::kDouble).item<double>();
}

std::size_t files_in(const std::string& folder) {
  std::size_t count = 0;
  for (const auto& file : fs::directory_iterator(folder)) {
    if (file.path().extension() == ".safetensors") ++count;
  }
  return count;
}

TEST(Cache, KeepsWhatFitsIntoMemory) {
  data::CacheManager cache({3.5 * 64e-9, "", 0, false});  // three images of 64 bytes
  for (int i = 0; i < 5; ++i) cache.put(std::to_string(i), entry_of(i));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(value_of(cache.get(std::to_string(i))), i);
  EXPECT_EQ(cache.get("3"), nullptr);
  const auto stats = cache.stats();
  EXPECT_EQ(stats.ram_bytes, 3U * 64);
  EXPECT_EQ(stats.ram_hits, 3);
  EXPECT_EQ(stats.misses, 1);
  EXPECT_TRUE(stats.is_full);
}

TEST(Cache, WhatWasUsedLongestAgoGoesWhereEntriesReplaceOthers) {
  data::CacheLimits limits{3.5 * 64e-9, "", 0, false};
  limits.replaces = true;
  data::CacheManager cache(limits);
  for (int i = 0; i < 3; ++i) cache.put(std::to_string(i), entry_of(i));
  EXPECT_EQ(value_of(cache.get("0")), 0);
  const auto held = cache.get("2");
  cache.put("3", entry_of(3));
  EXPECT_EQ(cache.get("1"), nullptr);
  cache.put("large", entry_of(9, 16));  // more than all of the memory: it drives nothing out
  EXPECT_EQ(cache.get("large"), nullptr);
  for (const int kept : {0, 2, 3}) EXPECT_EQ(value_of(cache.get(std::to_string(kept))), kept);
  cache.put("two", entry_of(5, 11));  // 121 bytes: two of the others go
  EXPECT_EQ(cache.get("0"), nullptr);
  EXPECT_EQ(cache.get("2"), nullptr);
  EXPECT_EQ(value_of(cache.get("3")), 3);
  EXPECT_EQ(value_of(cache.get("two")), 5);
  EXPECT_EQ(value_of(held), 2) << "whoever has it keeps it";
  EXPECT_EQ(cache.stats().ram_bytes, 121U + 64U);
}

TEST(Cache, TakesTheSmallestTypeThatHoldsTheNumbers) {
  data::CacheManager cache({1, "", 0, false});
  const std::map<std::string, std::pair<at::Tensor, at::ScalarType>> cases{
      {"mask", {at::tensor({0.0F, 1.0F, 255.0F}), at::kByte}},
      {"camera", {at::tensor({0.0F, 65535.0F}), at::kUInt16}},
      {"hounsfield", {at::tensor({-1024.0F, 3071.0F}), at::kShort}},
      {"fraction", {at::tensor({0.0F, 0.5F}), at::kFloat}},
      {"large", {at::tensor({0.0F, 65536.0F}), at::kFloat}},
      {"nan", {at::tensor({0.0F, NAN}), at::kFloat}},
      {"stored", {at::tensor({3, 4}).to(at::kUInt16), at::kUInt16}}};
  for (const auto& [name, expected] : cases) {
    data::CacheEntry entry;
    entry.tensors["x"] = expected.first;
    const at::Tensor kept = cache.put(name, entry)->tensors.at("x");
    EXPECT_EQ(kept.scalar_type(), expected.second) << name;
    EXPECT_TRUE(
        at::allclose(kept.to(at::kFloat), expected.first.to(at::kFloat), 0, 0, /*equal_nan=*/true))
        << name;
  }
}

TEST(Cache, DoesNotKeepTheWholeImageForACrop) {
  data::CacheManager cache({1, "", 0, false});
  data::CacheEntry entry;
  entry.tensors["x"] = at::randn({1, 100, 100}).narrow(1, 10, 5);
  EXPECT_EQ(cache.put("x", entry)->tensors.at("x").storage().nbytes(), 5U * 100 * 4);
}

TEST(Cache, AnotherProcessFindsItOnDisk) {
  for (const bool compress : {false, true}) {
    const test::TmpDir dir;
    const data::CacheLimits limits{0, dir / "cache", 1, compress};
    data::CacheManager(limits).put("a key\nof two lines", entry_of(0.5));
    data::CacheManager(limits).put("memory alone", entry_of(1), /*to_disk=*/false);
    data::CacheManager cache(limits);
    const auto entry = cache.get("a key\nof two lines");
    ASSERT_NE(entry, nullptr);
    EXPECT_EQ(value_of(entry), 0.5);
    EXPECT_EQ(entry->geometries.at("raw").spacing_um, entry_of(0).geometries["raw"].spacing_um);
    EXPECT_EQ(entry->geometries.at("raw").affine, entry_of(0).geometries["raw"].affine);
    EXPECT_EQ(cache.get("a key\nof two lines", /*use_disk=*/false) != nullptr, false);
    EXPECT_EQ(cache.get("memory alone"), nullptr);
    EXPECT_EQ(cache.stats().disk_hits, 1);
  }
}

TEST(Cache, ADamagedFileIsMadeAnew) {
  const test::TmpDir dir;
  const data::CacheLimits limits{0, dir / "cache", 1, false};
  data::CacheManager(limits).put("key", entry_of(0.5));
  std::string whole;
  for (const auto& file : fs::directory_iterator(dir / "cache")) {
    if (file.path().extension() == ".safetensors") whole = file.path().string();
  }
  const std::string good = read_file(whole);
  for (std::size_t cut : {std::size_t{0}, std::size_t{7}, good.size() / 2, good.size() - 1}) {
    write_file(whole, good.substr(0, cut));
    EXPECT_EQ(data::CacheManager(limits).get("key"), nullptr) << cut;
    EXPECT_FALSE(fs::exists(whole));
  }
  std::string flipped = good;
  flipped[flipped.size() - 5] ^= 16;  // in the numbers: only the checksum tells
  write_file(whole, flipped);
  EXPECT_EQ(data::CacheManager(limits).get("key"), nullptr);
  write_file(whole, good);
  EXPECT_NE(data::CacheManager(limits).get("key"), nullptr);
}

TEST(Cache, WithoutMemoryAGoodFileStays) {
  const test::TmpDir dir;
  const data::CacheLimits limits{0, dir / "cache", 1, /*compress=*/true};
  data::CacheManager(limits).put("key", entry_of(0.5, 8000));  // 256 MB once it is unpacked
  ASSERT_EQ(files_in(dir / "cache"), 1U);
  const pid_t child = ::fork();
  if (child == 0) {
    data::CacheManager cache(limits);
    std::ifstream file("/proc/self/statm");
    std::size_t pages = 0;
    file >> pages;
    const rlim_t limit = pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + (64U << 20U);
    const rlimit limits_of_child{limit, limit};
    ::setrlimit(RLIMIT_AS, &limits_of_child);
    try {
      cache.get("key");
    } catch (const std::exception&) {
      ::_exit(files_in(dir / "cache") == 1 ? 0 : 3);
    }
    ::_exit(files_in(dir / "cache") == 1 ? 4 : 3);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);  // 3: it was removed, 4: the memory was enough
}

TEST(Cache, LeavesOtherPeoplesFiles) {
  const test::TmpDir dir;
  make_folders(dir / "cache/.notes.tmp.2024-10-01");
  write_file(dir / "cache/.notes.tmp.2024-10-01/x", "kept");
  const data::CacheManager cache({0, dir / "cache", 1, false});
  EXPECT_TRUE(fs::exists(dir / "cache/.notes.tmp.2024-10-01/x"));
}

TEST(Cache, TheDiskLimitTakesTheOldest) {
  const test::TmpDir dir;
  data::CacheManager cache({0, dir / "cache", 100e-6, false});  // 100 kB
  for (int i = 0; i < 50; ++i) {
    cache.put(std::to_string(i), entry_of(i + 0.5, 32));  // 4 kB each
    cache.get("0");                                       // stays in use
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  std::size_t bytes = 0;
  for (const auto& file : fs::directory_iterator(dir / "cache")) bytes += file.file_size();
  EXPECT_LE(bytes, 105'000U);
  EXPECT_NE(cache.get("0"), nullptr);
  EXPECT_NE(cache.get("49"), nullptr);
  EXPECT_EQ(cache.get("1"), nullptr);
}

TEST(Cache, AFolderThatCannotBeMadeIsTheUsersMistake) {
  const test::TmpDir dir;
  write_file(dir / "file", "");
  EXPECT_THROW(data::CacheManager({1, dir / "file/cache", 1, false}), ConfigError);
}

/// What several processes do to one folder until they are killed.
[[noreturn]] void write_for_ever(const std::string& folder) {
  data::CacheManager cache({0, folder, 400e-6, false});
  for (int i = 0;; i = (i + 1) % 200) {
    const std::string key = std::to_string(i);
    const auto entry = cache.get(key);
    if (entry == nullptr) cache.put(key, entry_of(i + 0.5, 32));
    if (entry != nullptr && value_of(entry) != i + 0.5) std::_Exit(3);
  }
}

TEST(Cache, ProcessesThatAreKilledLeaveNothingWrong) {
  const test::TmpDir dir;
  const std::string folder = dir / "cache";
  for (int round = 0; round < 10; ++round) {
    std::vector<pid_t> children;
    for (int i = 0; i < 3; ++i) {
      const pid_t child = ::fork();
      if (child == 0) write_for_ever(folder);
      children.push_back(child);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(60 + 13 * round));
    for (const pid_t child : children) {
      ::kill(child, SIGKILL);
      int status = 0;
      ::waitpid(child, &status, 0);
      EXPECT_TRUE(WIFSIGNALED(status)) << WEXITSTATUS(status);  // 3: a wrong value was read
    }
    data::CacheManager cache({0, folder, 400e-6, false});
    for (int i = 0; i < 200; ++i) {
      const auto entry = cache.get(std::to_string(i));
      if (entry != nullptr) {
        EXPECT_EQ(value_of(entry), i + 0.5);
      }
    }
    for (const auto& file : fs::directory_iterator(folder))
      EXPECT_EQ(file.path().string().find(".tmp."), std::string::npos) << file.path();
  }
  EXPECT_GT(files_in(folder), 10U);
}

TEST(Cache, StampsTellChangedFiles) {
  const test::TmpDir dir;
  write_file(dir / "a.tif", "one");
  make_folders(dir / "b.zarr/0");
  write_file(dir / "b.zarr/0/0", "one");
  const std::string file = data::content_stamp(dir / "a.tif");
  const std::string folder = data::content_stamp(dir / "b.zarr");
  EXPECT_EQ(data::content_stamp(dir / "a.tif"), file);
  write_file(dir / "a.tif", "two");
  write_file(dir / "b.zarr/0/0", "two");
  EXPECT_NE(data::content_stamp(dir / "a.tif"), file);
  EXPECT_NE(data::content_stamp(dir / "b.zarr"), folder);
}

/// Counts how often it runs.
struct Counting final : data::Transform {
  void apply(data::Sample& sample, Rng&) const override {
    ++count;
    sample.tensors["x"] = at::full({1, 2, 2}, 7.0);
  }
  mutable int count = 0;
};

TEST(Pipeline, DoesOncePerFileWhatIsNotRandom) {
  const test::TmpDir dir;
  write_file(dir / "a.tif", "one");
  data::Sample item;
  item.id = dir / "a.tif";
  item.sources["x"].path = item.id;
  const auto counting = std::make_shared<Counting>();
  counting->text = "{}";
  data::CurrentTransform current{nullptr};
  const auto load = [&] {  // a new run
    const auto cache =
        std::make_shared<data::CacheManager>(data::CacheLimits{1, dir / "cache", 1, false});
    const data::Pipeline pipeline({item}, {counting}, cache, /*is_shared=*/true);
    EXPECT_EQ(pipeline.load(0, current).at("x").sum().item<double>(), 28);
    return pipeline.load(0, current).at("x").sum().item<double>();
  };
  EXPECT_EQ(load(), 28);
  EXPECT_EQ(load(), 28);
  EXPECT_EQ(counting->count, 1);
  counting->text = "{other: 1}";  // another transform
  load();
  EXPECT_EQ(counting->count, 2);
  write_file(dir / "a.tif", "two");  // another file
  load();
  EXPECT_EQ(counting->count, 3);
}

}  // namespace
}  // namespace cytra
