#pragma once
// What other processes do on the machine while something is measured.
#include <string>

namespace cytra::perf {

/// The processors' time since it was made. Costs a read of /proc/stat each time.
class MachineLoad {
 public:
  /// `root` stands before /proc: of another file system, for tests.
  explicit MachineLoad(std::string root = "");

  /// What others kept busy meanwhile, in processors out of those that this process may run on:
  /// 1.5 is one and a half. What this process and its ended children used is not in it. < 0: the
  /// system does not tell.
  double others() const;
  /// Whether measured times are longer than they would be alone: others() is a tenth of the
  /// processors or more.
  bool is_busy() const;
  /// "other processes kept 1.2 of 2 processors busy meanwhile". "" where nothing tells.
  std::string text() const;
  /// That line, "WHAT: ...": a warning on a busy machine, else an information.
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
