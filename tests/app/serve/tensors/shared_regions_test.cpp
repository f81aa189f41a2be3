#include "app/serve/tensors/shared_regions.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

namespace cytra::app {
namespace {

/// Shared memory of a client.
struct ClientMemory {
  explicit ClientMemory(int64_t bytes)
      : file(::shm_open(key.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600)) {
    if (file.get() < 0 || ::ftruncate(file.get(), bytes) != 0)
      throw std::runtime_error("no shared memory");
  }
  ~ClientMemory() { ::shm_unlink(key.c_str()); }
  ClientMemory(const ClientMemory&) = delete;
  ClientMemory& operator=(const ClientMemory&) = delete;
  const std::string key = fmt::format("/cytra-test-{}", ::getpid());
  const Descriptor file;
};

/// "": it works; else the status and the message.
template <class Call>
std::string refusal_of(const Call& call) {
  try {
    call();
    return "";
  } catch (const HttpError& error) {
    return fmt::format("{} {}", error.status, error.what());
  }
}

struct SharedMemory : ::testing::Test {
  std::string add(const std::string& name, const std::string& key, int64_t offset, int64_t bytes) {
    return refusal_of([&] { regions.add(name, {key, offset, bytes}); });
  }
  ClientMemory memory{64};
  RequestBudget budget{2, 100};
  SharedRegions regions{budget};
};

TEST_F(SharedMemory, PassesBytesThroughARegion) {
  ASSERT_EQ(add("a", memory.key, 16, 32), "");
  ASSERT_EQ(add("same", memory.key.substr(1), 0, 64), "") << "the / may be left out";
  regions.write("a", 4, "abc");
  EXPECT_EQ(regions.read("a", 3, 5).bytes, std::string("\0abc\0", 5));
  EXPECT_EQ(regions.read("same", 20, 3).bytes, "abc") << "a begins at 16";
  EXPECT_EQ(regions.list("a").at("a").bytes, 32);
  EXPECT_EQ(regions.list("").size(), 2);
  regions.remove("a");
  EXPECT_EQ(refusal_of([&] { regions.read("a", 0, 1); }), "400 a: no such region is registered");
  EXPECT_EQ(refusal_of([&] { regions.list("a"); }), "400 a: no such region is registered");
  regions.remove("");
  EXPECT_TRUE(regions.list("").empty());
}

TEST_F(SharedMemory, NamesLeadNowhereElse) {
  for (const std::string& key : {std::string(),
                                 std::string("/"),
                                 std::string(".."),
                                 std::string("/."),
                                 std::string("a/b"),
                                 std::string("/../etc/passwd"),
                                 std::string("a\0b", 3)})
    EXPECT_NE(add("a", key, 0, 1).find("expected the name of a region"), std::string::npos) << key;
  EXPECT_NE(add("a", memory.key + "-none", 0, 1).find("No such file"), std::string::npos);
  EXPECT_NE(add(std::string(256, 'a'), memory.key, 0, 1).find("a name of 256 bytes"),
            std::string::npos);
  EXPECT_EQ(add(std::string(255, 'a'), memory.key, 0, 1), "");
  EXPECT_NE(add(std::string(255, 'a'), memory.key, 0, 1).find("is registered already"),
            std::string::npos);
}

TEST_F(SharedMemory, EndsWhereItEnds) {
  for (const auto& [offset, bytes] : {std::pair<int64_t, int64_t>{0, 65},
                                      {64, 1},
                                      {65, 1},
                                      {-1, 8},
                                      {0, 0},
                                      {0, -1},
                                      {1, INT64_MAX},
                                      {INT64_MAX, 1}})
    EXPECT_NE(add("a", memory.key, offset, bytes).find("but it has 64"), std::string::npos)
        << offset << " " << bytes;
  ASSERT_EQ(add("a", memory.key, 32, 32), "");
  for (const auto& [offset, bytes] : {std::pair<int64_t, int64_t>{0, 33},
                                      {32, 1},
                                      {-1, 1},
                                      {1, INT64_MAX},
                                      {INT64_MAX, 1},
                                      {0, -1}})
    EXPECT_NE(refusal_of([&, from = offset, count = bytes] {
                regions.read("a", from, count);
              }).find("but the region has 32"),
              std::string::npos)
        << offset << " " << bytes;
  EXPECT_NE(refusal_of([&] { regions.write("a", 30, "abc"); }).find("but the region has 32"),
            std::string::npos);
  ASSERT_EQ(::ftruncate(memory.file.get(), 40), 0);
  EXPECT_EQ(regions.read("a", 0, 8).bytes, std::string(8, '\0'));
  EXPECT_EQ(refusal_of([&] { regions.read("a", 0, 9); }), "400 a: the region became smaller");
}

TEST_F(SharedMemory, TakesBudgetWhileItsBytesAreHeld) {
  ASSERT_EQ(add("a", memory.key, 0, 64), "");
  auto content = regions.read("a", 0, 64);
  EXPECT_EQ(budget.bytes(), 64);
  EXPECT_EQ(budget.requests(), 0) << "the request has its share";
  EXPECT_EQ(refusal_of([&] { regions.read("a", 0, 37); }).substr(0, 3), "503");
  EXPECT_EQ(refusal_of([&] { regions.count(101); }).substr(0, 3), "413");
  content = {};
  EXPECT_EQ(budget.bytes(), 0);
  EXPECT_EQ(refusal_of([&] { regions.read("a", 0, 37); }), "");
}

TEST_F(SharedMemory, HasALimitOfRegions) {
  for (int i = 0; i < 1024; ++i) ASSERT_EQ(add(std::to_string(i), memory.key, 0, 1), "");
  EXPECT_NE(add("more", memory.key, 0, 1).find("too many"), std::string::npos);
  regions.remove("7");
  EXPECT_EQ(add("more", memory.key, 0, 1), "");
}

}  // namespace
}  // namespace cytra::app
