#include "base/control_groups.h"

#include <filesystem>

#include <gtest/gtest.h>
#include <sched.h>

#include "base/files.h"
#include "tests/support/tmp_dir.h"

namespace cytra {
namespace {

class ControlGroups : public ::testing::Test {
 protected:
  void put(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_.path() + path).parent_path());
    write_file(root_.path() + path, text);
  }
  std::optional<double> quota() const { return processor_quota(root_.path()); }
  test::TmpDir root_;
};

TEST_F(ControlGroups, WithoutAnyThereIsNoQuota) {
  EXPECT_EQ(quota(), std::nullopt);
}

TEST_F(ControlGroups, QuotaOfVersion2IsTheTightestOfTheGroupsAround) {
  put("/proc/self/cgroup", "0::/slurm/job_7/step_0\n");
  put("/sys/fs/cgroup/slurm/job_7/step_0/cpu.max", "max 100000\n");
  EXPECT_EQ(quota(), std::nullopt);
  put("/sys/fs/cgroup/slurm/job_7/cpu.max", "150000 100000\n");
  put("/sys/fs/cgroup/slurm/cpu.max", "400000 50000\n");
  EXPECT_EQ(quota(), 1.5);
}

TEST_F(ControlGroups, QuotaOfVersion1) {
  // The path is the host's, the mount begins at the container's own group.
  put("/proc/self/cgroup", "5:cpu,cpuacct:/docker/f00\n4:memory:/docker/f00\n0::/\n");
  put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  put("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota(), std::nullopt);
  put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "600000\n");
  put("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "200000\n");
  EXPECT_EQ(quota(), 3);
}

TEST_F(ControlGroups, ProcessorsAreThoseOfTheAffinityWithinTheQuota) {
  cpu_set_t own, one;
  ASSERT_EQ(::sched_getaffinity(0, sizeof own, &own), 0);
  const int all = CPU_COUNT(&own);
  EXPECT_EQ(available_processors(root_.path()), all);
  put("/sys/fs/cgroup/cpu.max", "99000000 100000\n");
  EXPECT_EQ(available_processors(root_.path()), std::min(all, 990));
  put("/sys/fs/cgroup/cpu.max", "150000 100000\n");
  EXPECT_EQ(available_processors(root_.path()), 1);
  put("/sys/fs/cgroup/cpu.max", "20000 100000\n");
  EXPECT_EQ(available_processors(root_.path()), 1);
  std::filesystem::remove(root_.path() + "/sys/fs/cgroup/cpu.max");
  int first = 0;
  while (CPU_ISSET(first, &own) == 0) ++first;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(available_processors(root_.path()), 1);
  ::sched_setaffinity(0, sizeof own, &own);
}

}  // namespace
}  // namespace cytra
