#include "perf/machine_load.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "base/log.h"
#include "tests/support/tmp_dir.h"

namespace cytra::perf {
namespace {

/// A machine of two processors.
class Machine {
 public:
  Machine() { make_folders(dir_ / "proc"); }
  std::string root() const { return dir_.path(); }
  /// So many ticks of work and of idling of each processor since its start.
  void set(int64_t busy, int64_t idle) const {
    std::string text = fmt::format("cpu  {} 0 0 {} 0 0 0 0 0 0\n", 2 * busy, 2 * idle);
    for (const int processor : {0, 1}) {  // user nice system idle iowait irq softirq steal
      const int64_t user = busy - 3;
      text += fmt::format("cpu{} {} 1 1 {} 7 0 1 0 0 0\n", processor, user, idle - 7);
    }
    write_file(dir_ / "proc/stat", text + "intr 1 2 3\nctxt 5\n");
  }
  std::string told(const MachineLoad& load) const {
    const std::string path = dir_ / "log.txt";
    write_file(path, "");
    log::set_file(path);
    load.report("optimize");
    log::set_file("");
    return read_file(path);
  }

 private:
  test::TmpDir dir_;
};

TEST(MachineLoad, OthersAreWhatIsBusyBesideThisProcess) {
  const Machine machine;
  machine.set(1000, 9000);
  const MachineLoad load(machine.root());
  machine.set(1000 + 75000, 9000 + 25000);  // 1000 s; this test's own are a fraction of one
  EXPECT_NEAR(load.others(), 1.5, 0.01);
  EXPECT_TRUE(load.is_busy());
  EXPECT_EQ(load.text(), "other processes kept 1.5 of 2 processors busy meanwhile");
  const std::string told = machine.told(load);
  EXPECT_NE(told.find("warning: "), std::string::npos) << told;
  EXPECT_NE(told.find("optimize: other processes kept 1.5 of 2"), std::string::npos) << told;
}

TEST(MachineLoad, AnIdleMachineIsNoWarning) {
  const Machine machine;
  machine.set(1000, 9000);
  const MachineLoad load(machine.root());
  machine.set(1000 + 1000, 9000 + 99000);
  EXPECT_FALSE(load.is_busy());
  EXPECT_EQ(load.text(), "other processes kept 0.0 of 2 processors busy meanwhile");
  EXPECT_EQ(machine.told(load).find("warning: "), std::string::npos);
}

TEST(MachineLoad, ASystemThatTellsNothingIsNotBusy) {
  const Machine machine;  // no /proc/stat, then one without a change
  for (const bool is_there : {false, true}) {
    if (is_there) machine.set(0, 0);
    const MachineLoad load(machine.root());
    EXPECT_LT(load.others(), 0);
    EXPECT_FALSE(load.is_busy());
    EXPECT_EQ(load.text(), "");
    EXPECT_EQ(machine.told(load), "");
  }
}

}  // namespace
}  // namespace cytra::perf
