#pragma once
// Which images of a run are done, for a run that goes on with it.
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/append_file.h"
#include "inference/outputs/output.h"

namespace cytra::pipelines {

/// predictions.jsonl of a run's folder: a line for each image that is done, with a stamp of all its
/// result depends on, or that failed. Each process has a file of its own, and knows those of all.
class PredictRecord {
 public:
  /// Throws: as AtomicFile.
  PredictRecord(std::string folder, int64_t rank);
  /// The files of an image, by the name of its results, that was done with this stamp and whose
  /// files are all there, as they were written.
  std::optional<inference::ResultFiles> find(const std::string& name,
                                             const std::string& stamp) const;
  /// What an earlier run with other settings has left of an image, but for `files` that are new,
  /// and for those that are another image's.
  inference::ResultFiles outdated(const std::string& name,
                                  const inference::ResultFiles& files) const;
  /// `files`: below the folder. `images`: how many it stands for that have no line of their own.
  void add(const std::string& name,
           const std::string& image,
           const std::string& stamp,
           const inference::ResultFiles& files,
           int64_t images = 1);
  void add_failed(const std::string& image, int code);
  /// What other processes have added since, of `images`: their files, or their names and codes.
  struct Others {
    inference::ResultFiles files;
    int64_t done = 0;
    bool has_joined = false;  // time lapses became one file: their parts are gone
    std::vector<std::pair<std::string, int>> failed;
  };
  Others of_others();

 private:
  struct Entry {
    std::string stamp;
    inference::ResultFiles files;
  };
  void read(const std::string& path, Others* others);
  std::vector<std::string> paths() const;
  std::string place_of(const std::string& name) const;
  void take_over(const std::string& name, const inference::ResultFiles& files) const;
  std::string folder_, own_;
  std::map<std::string, int64_t> read_;  // bytes of the others' files by now
  std::map<std::string, Entry> entries_;
  mutable std::mutex mutex_;                           // of what follows
  mutable std::map<std::string, std::string> owners_;  // by path, the image whose file it is
  AppendFile file_;
};

}  // namespace cytra::pipelines
