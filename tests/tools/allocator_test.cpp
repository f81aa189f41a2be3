// The programs' threads and allocator: what they set for themselves, and what the user may.
#include <cstdlib>

#include <gtest/gtest.h>

#include "base/strings.h"
#include "tests/support/program.h"

namespace cytra {
namespace {
using test::shell;

/// GOMP_SPINCOUNT as libgomp tells it once it is loaded, under these variables.
std::string spin_count(const std::string& variables) {
  const std::string messages =
      shell("env -u GOMP_SPINCOUNT -u OMP_WAIT_POLICY OMP_DISPLAY_ENV=VERBOSE " + variables +
            " \"$BIN/train\" --describe task")
          .err;
  const std::string name = "GOMP_SPINCOUNT = '";
  const std::size_t at = messages.find(name);
  EXPECT_EQ(messages.find(name, at + 1), std::string::npos) << "more than one OpenMP";
  if (at == std::string::npos) return "none in: " + messages;
  return messages.substr(at + name.size(),
                         messages.find('\'', at + name.size()) - at - name.size());
}

TEST(ProgramThreads, SpinBrieflyUnlessTheUserSays) {
  EXPECT_EQ(spin_count(""), "1000");
  EXPECT_EQ(spin_count("GOMP_SPINCOUNT=7"), "7");
  EXPECT_EQ(spin_count("OMP_WAIT_POLICY=passive"), "0");
  EXPECT_EQ(spin_count("OMP_WAIT_POLICY=active"), "30000000000");
}

/// The heap after a step of a training of a network with these features, in MB.
double heap_mb(const std::string& filters) {
  const test::TmpDir dir;
  const auto outcome = shell(
      "cd '" + dir.path() +
      "' && \"$BIN/generate_samples\" --output data --train 2 --valid 1 --test 1 --size 64 && "
      "\"$BIN/train\" experiment=im2im/benchmark data.path=data \"paths.output_dir=$PWD/run\" "
      "patch_shape=[32,32] data.batch_size=2 trainer.max_steps=1 trainer.log_every_n_steps=1 "
      "logger=csv +callbacks.stats._target_=DeviceStatsMonitor model.filters=" +
      filters +
      " && head -n 1 run/csv/version_0/metrics.csv | cut -d, -f6 | grep heap_mb && "
      "cut -d, -f6 run/csv/version_0/metrics.csv | grep -m 1 [0-9] >heap && cat heap >&2");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const auto lines = split(trim(outcome.err), '\n');
  return std::atof(lines.back().c_str());
}

TEST(ProgramHeap, HoldsTensorsInJemalloc) {
  if (!CYTRA_HAS_JEMALLOC) GTEST_SKIP() << "built without";
  // 1.9 million parameters more, each with a gradient and two moments, are 30 MB.
  EXPECT_GT(heap_mb("[64,128,256]") - heap_mb("[4,8,8]"), 15);
}

}  // namespace
}  // namespace cytra
