// Against what TensorBoard's own protobuf wrote: tests/golden/make_events.py.
#include "io/events/event_file.h"

#include <cmath>
#include <filesystem>
#include <thread>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/compression/crc32c.h"
#include "tests/support/events.h"
#include "tests/support/tmp_dir.h"

namespace cytra::io {
namespace {

using test::records_of;

std::string golden_events() {
  return read_file(std::string(CYTRA_SOURCE_DIR) + "/tests/golden/events.tfevents");
}

/// An event without its time, the first field.
std::string timeless(const std::string& event) {
  EXPECT_EQ(event.at(0), '\x09');
  return event.substr(9);
}

std::string png_in(const std::string& event) {
  const std::size_t begin = event.find("\x89PNG");
  const std::size_t end = event.find("IEND");
  return event.substr(begin, end + 8 - begin);
}

TEST(Crc32c, KnownValues) {  // RFC 3720, B.4, and the check value of the CRC catalogue
  EXPECT_EQ(crc32c(""), 0U);
  EXPECT_EQ(crc32c("123456789"), 0xE3069283U);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAU);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62A8AB43U);
}

TEST(EventFile, BytesAreThoseOfTensorBoard) {
  const std::vector<std::string> expected = records_of(golden_events());
  ASSERT_EQ(expected.size(), 11U);
  const config::Node tree = config::parse_yaml(
      "{model.depth: 3, optimizer.lr: 1e-3, flag: true, model._target_: DynUNet, none: null, "
      "shape: [32, 64]}",
      "test");
  const HyperParameters parameters(tree.map.begin(), tree.map.end());
  Histogram histogram;
  histogram.min = -1.5;
  histogram.max = 4;
  histogram.count = 6;
  histogram.sum_squares = 21.25;
  histogram.limits = {-1, 0, 4};
  histogram.counts = {1, 2, 3};
  const test::TmpDir dir;
  {
    EventFile file(dir.path(), 7);
    file.add(scalar_summary({{"a", 0}, {"train/loss", -2.5}}), 1);
    file.add(scalar_summary({{"nan", std::nan("")}}), 300);
    file.add(image_summary("rgb", png_in(expected[4])), int64_t{1} << 40);
    file.add(image_summary("grey", png_in(expected[5])), 2);
    file.add(histogram_summary("weights", histogram), 0);
    file.add(text_summary("note", "Grüße, **TensorBoard**"), 3);
    file.add(session_start_summary(parameters), 0);
    file.add(experiment_summary(parameters, {"hp/loss", "hp/val/dice"}), 0);
    file.add(session_end_summary(true), 0);
  }
  const std::string path = test::only_file(dir.path());
  EXPECT_NE(path.find("events.out.tfevents."), std::string::npos);
  const std::vector<std::string> written = records_of(read_file(path));
  ASSERT_EQ(written.size(), expected.size());
  for (std::size_t i = 0; i < written.size(); ++i)
    EXPECT_EQ(timeless(written[i]), timeless(expected[i])) << "record " << i;
}

TEST(EventFile, AKillLeavesWholeRecords) {
  const test::TmpDir dir;
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    EventFile file(dir.path(), 0);
    for (int64_t step = 0;; ++step) file.add(scalar_summary({{"loss", 1.0}}), step);
  }
  const auto size = [&] {
    uintmax_t bytes = 0;
    for (const auto& entry : std::filesystem::directory_iterator(dir.path()))
      bytes = entry.file_size();
    return bytes;
  };
  while (size() < 100'000) std::this_thread::yield();
  ::kill(child, SIGKILL);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  const std::string file = read_file(test::only_file(dir.path()));
  std::size_t bytes = 0;
  for (const std::string& record : records_of(file)) bytes += record.size() + 16;
  EXPECT_EQ(bytes, file.size());
}

}  // namespace
}  // namespace cytra::io
