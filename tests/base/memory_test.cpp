#include "base/memory.h"

#include <filesystem>

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/files.h"
#include "tests/support/tmp_dir.h"

namespace cytra {
namespace {

/// A file system as available_memory() reads it: a machine with 8 GiB left.
class Memory : public ::testing::Test {
 protected:
  Memory() {
    put("/proc/meminfo",
        "MemTotal:       16000000 kB\nMemAvailable:    8388608 kB\nSwapFree: 0 kB\n");
  }
  void put(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_.path() + path).parent_path());
    write_file(root_.path() + path, text);
  }
  AvailableMemory available() const { return available_memory(root_.path()); }
  test::TmpDir root_;
};

constexpr int64_t kMiB = 1 << 20;

TEST_F(Memory, IsWhatTheMachineHasLeftWithItsSwap) {
  EXPECT_EQ(available().bytes, 8192 * kMiB);
  EXPECT_EQ(available().limit, "the machine");
  put("/proc/meminfo", "MemAvailable: 1024 kB\nSwapFree: 2048 kB\n");
  EXPECT_EQ(available().bytes, 3 * kMiB);
}

TEST_F(Memory, IsTheContainersInVersion2) {
  put("/proc/self/cgroup", "0::/\n");
  put("/sys/fs/cgroup/memory.max", "629145600\n");
  put("/sys/fs/cgroup/memory.current", "209715200\n");
  put("/sys/fs/cgroup/memory.stat",
      "anon 104857600\nfile 104857600\ninactive_file 52428800\nactive_file 52428800\n");
  EXPECT_EQ(available().bytes, (600 - 200 + 50 + 50) * kMiB);
  EXPECT_EQ(available().limit, "the container's limit");
  put("/sys/fs/cgroup/memory.max", "max\n");
  EXPECT_EQ(available().bytes, 8192 * kMiB);
}

TEST_F(Memory, IsTheTightestOfTheGroupsAround) {
  put("/proc/self/cgroup", "0::/slurm/job_7/step_0\n");
  put("/sys/fs/cgroup/slurm/job_7/step_0/memory.max", "max\n");
  put("/sys/fs/cgroup/slurm/job_7/memory.max", "1073741824\n");
  put("/sys/fs/cgroup/slurm/job_7/memory.current", "1048576\n");
  put("/sys/fs/cgroup/slurm/memory.max", "4294967296\n");
  EXPECT_EQ(available().bytes, 1023 * kMiB);
}

TEST_F(Memory, IsTheContainersInVersion1) {
  // The path is the host's, the mount begins at the container's own group.
  put("/proc/self/cgroup", "5:cpu,cpuacct:/docker/f00\n4:hugetlb,memory:/docker/f00\n0::/\n");
  put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "629145600\n");
  put("/sys/fs/cgroup/memory/memory.usage_in_bytes", "314572800\n");
  put("/sys/fs/cgroup/memory/memory.stat",
      "inactive_file 7\ntotal_inactive_file 104857600\ntotal_active_file 1048576\n");
  EXPECT_EQ(available().bytes, (600 - 300 + 101) * kMiB);
  put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");  // none
  EXPECT_EQ(available().limit, "the machine");
}

TEST_F(Memory, IsNeverBelowZero) {
  put("/sys/fs/cgroup/memory.max", "1000\n");
  put("/sys/fs/cgroup/memory.current", "2000\n");
  EXPECT_EQ(available().bytes, 0);
}

TEST_F(Memory, EndsAtTheLimitOfTheAddressSpace) {
  const std::string limits = "Limit                     Soft Limit           Hard Limit\n";
  put("/proc/self/statm", "1000 500 100\n");
  put("/proc/self/limits", limits + "Max address space         unlimited            unlimited\n");
  EXPECT_EQ(available().limit, "the machine");
  put("/proc/self/limits", limits + "Max address space         1073741824           unlimited\n");
  EXPECT_EQ(available().bytes, 1024 * kMiB - 1000 * ::sysconf(_SC_PAGESIZE));
  EXPECT_EQ(available().limit, "ulimit -v");
}

TEST_F(Memory, EndsAtTheLimitOfData) {
  put("/proc/self/status", "VmPeak: 9000 kB\nVmData:     2048 kB\n");
  put("/proc/self/limits",
      "Max data size             2147483648           unlimited            bytes\n");
  EXPECT_EQ(available().bytes, 2046 * kMiB);
  EXPECT_EQ(available().limit, "ulimit -d");
  put("/proc/self/limits",
      "Max data size             unlimited            unlimited            bytes\n");
  EXPECT_EQ(available().limit, "the machine");
}

TEST_F(Memory, IsUnknownWhereNothingTells) {
  std::filesystem::remove_all(root_.path() + "/proc");
  EXPECT_EQ(available().bytes, INT64_MAX);
}

TEST(MemoryOfThisMachine, IsKnown) {
  const int64_t bytes = available_memory().bytes;
  EXPECT_GT(bytes, kMiB);
  EXPECT_LT(bytes, int64_t{1} << 50);
}

TEST(HeapStatistics, AreNoneInAHostWithoutJemalloc) {
  EXPECT_FALSE(heap_statistics());
  release_unused_memory();  // does nothing
}

}  // namespace
}  // namespace cytra
