#pragma once
// What other processes do on the machine while something is measured.
#include <string>

namespace cytra::perf {

/// The processors' time since it was made. Costs a read of /proc/stat each time.
class MachineLoad {
 public:
  /// `root` is put before /proc: another file system, for tests.
  explicit MachineLoad(std::string root = "");

  /// The number of processors that other processes kept busy meanwhile, among those that this
  /// process may run on, such as 1.5. This process and its ended children are not counted. < 0:
  /// not known.
  double others() const;
  /// Whether measured times are longer than they would be alone: others() is a tenth of the
  /// processors or more.
  bool is_busy() const;
  /// "other processes kept 1.2 of 2 processors busy meanwhile". "" where the load is not known.
  std::string text() const;
  /// Logs text() after `what` and a colon: as a warning on a busy machine, else as information.
  void report(const std::string& what) const;

 private:
  struct Ticks {
    double busy = 0, all = 0, processors = 0;  // since the machine's start, of all processors
  };
  Ticks read() const;
  std::string root_;
  Ticks begin_;
  double own_s_;
};

/// Looks for a quarter of a second, before minutes of measuring: warns on a busy machine.
void warn_if_busy(const std::string& what);

}  // namespace cytra::perf
