#include "io/mapped_file.h"

#include <atomic>
#include <numeric>
#include <thread>

#include "io/input_file.h"
#include "tests/io/fixture.h"

namespace cytra::io {
namespace {

constexpr std::size_t kBytes = std::size_t{1} << 20;

std::string file_in(const Folder& folder) {
  put(folder / "a", std::string(kBytes, '\1'));
  return folder / "a";
}

TEST(MappedFile, WhatIsLostWhileItIsReadIsAnError) {  // SIGBUS once
  const Folder folder;
  const std::string path = file_in(folder);
  InputFile file(path);
  file.map();
  const auto sum = [](const volatile unsigned char* data) {
    std::size_t all = 0;
    for (std::size_t i = 0; i < kBytes; ++i) all += data[i];
    return all;
  };
  EXPECT_EQ(file.read_mapped(sum), kBytes);
  const std::string message = message_of<DataError>([&] {
    file.read_mapped([&](const unsigned char* data) {
      std::filesystem::resize_file(path, 10000);
      return sum(data);
    });
  });
  EXPECT_NE(message.find(path + ": became shorter"), std::string::npos) << message;
  // As long as before, but what was lost does not come back
  std::filesystem::resize_file(path, kBytes);
  EXPECT_THROW(file.read_mapped(sum), DataError);
}

TEST(MappedFile, EachThreadsFileIsItsOwn) {
  const Folder folder;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        const std::string path = folder / (std::to_string(t) + "_" + std::to_string(i));
        put(path, std::string(kBytes, '\1'));
        const bool is_cut = (t + i) % 2 == 0;
        InputFile file(path);
        file.map();
        bool is_error = false;
        try {
          file.read_mapped([&](const unsigned char* data) {
            if (is_cut) std::filesystem::resize_file(path, 1);
            return std::accumulate(data, data + kBytes, std::size_t{0});
          });
        } catch (const DataError&) {
          is_error = true;
        }
        wrong += is_error != is_cut ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(MappedFileDeathTest, OtherFaultsStillEndTheProcess) {
  const Folder folder;
  const std::string path = file_in(folder);
  EXPECT_EXIT(
      {
        InputFile file(path);
        file.map();
        file.read_mapped([](const unsigned char*) { return 0; });
        std::filesystem::resize_file(path, 0);
        volatile unsigned char byte = file.mapped().data()[kBytes - 1];  // nobody would check
        (void)byte;
      },
      ::testing::KilledBySignal(SIGBUS),
      "");
}

}  // namespace
}  // namespace cytra::io
