#pragma once
#include <cstdint>
#include <string>
#include <utility>

#include "base/files.h"

namespace cytra::training {

/// What a profiler records of the thread that makes, calls and ends it: steps of a training, or
/// batches of images of another program. The base of trainer.profiler, predict.profiler and
/// segment.profiler.
class Profile {
 public:
  struct Settings {
    std::string name;           // the profiler's, in the log
    std::string folder;         // "": no files are written
    std::string unit = "step";  // what is counted
    int64_t before = 0;         // the number of the newest step when it begins
  };
  virtual ~Profile() = default;
  Profile& operator=(Profile&&) = delete;

  void end_step() {
    steps_ += 1;
    step_ended();
  }
  /// Writes the files and logs the table. Throws: as AtomicFile.
  virtual void finish() = 0;

 protected:
  /// Makes the folder.
  explicit Profile(Settings settings) : settings_(std::move(settings)) {
    if (!settings_.folder.empty()) make_folders(settings_.folder);
  }
  virtual void step_ended() = 0;
  /// Writes FOLDER/table.txt. Returns its path.
  std::string write_table(const std::string& table) const {
    const std::string path = settings_.folder + "/table.txt";
    write_file(path, table);
    return path;
  }

  int64_t number() const { return settings_.before + steps_; }  // that the newest step has
  const Settings settings_;
  int64_t steps_ = 0;  // that have ended
};

}  // namespace cytra::training
