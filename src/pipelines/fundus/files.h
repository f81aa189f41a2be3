#pragma once
// The files that are written for photographs, and which photographs are done.
#include <map>
#include <string>
#include <vector>

#include "base/run_lock.h"
#include "pipelines/fundus/fundus.h"
#include "pipelines/job/done_record.h"

namespace cytra::pipelines {

/// A folder of results (fundus_files()), with fundus.jsonl, a line for each photograph as it is
/// done, and fundus.csv, a row for each, out of it. Thread: one at a time.
class FundusFiles {
 public:
  /// Goes on with what earlier runs have left, and holds the folder's lock. `settings`: what else
  /// results depend on. Throws: ConfigError where photographs, or files of the user's own, would be
  /// overwritten; as RunLock, DoneRecord.
  FundusFiles(std::string folder,
              const std::vector<FundusInput>& inputs,
              const FundusOptions& options,
              const std::string& settings);
  /// Whether the image was done with these settings, and its files are as they were written. Warns
  /// where it takes the place of another photograph of its name.
  bool has(const FundusInput& input);
  /// Records an image whose files are written, and removes files that other settings have left.
  void add(const FundusInput& input, const data::fundus::Disc& disc);
  /// `disc`: null where it can't be read.
  void add_failed(const FundusInput& input, const data::fundus::Disc* disc);
  /// Writes fundus.csv; returns its path. Throws: IoError when a line of this run is missing in
  /// fundus.jsonl, as on a full disk; as AtomicFile.
  std::string write_table();

 private:
  void add(const FundusInput& input,
           const std::string& state,
           const data::fundus::Disc& disc,
           const std::string& stamp,
           const inference::ResultFiles& files);
  const std::string folder_;
  const FundusOptions options_;
  const std::string settings_;
  const RunLock lock_;
  DoneRecord record_;
  std::map<std::string, std::string> stamps_;  // by name
  std::map<std::string, std::string> added_;   // photographs of this run, by name
  bool has_warned_ = false;
};

}  // namespace cytra::pipelines
