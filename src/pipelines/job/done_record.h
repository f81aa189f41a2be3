#pragma once
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/append_file.h"
#include "config/node.h"
#include "inference/outputs/output.h"

namespace cytra::pipelines {

/// What a record says of an image that is done.
struct DoneImage {
  std::string name;                 // of its results
  std::string image;                // its path, with what was chosen of it
  std::string stamp;                // of all its results depend on
  inference::ResultFiles files;     // below the folder
  std::string more = "";            // what else its writer keeps: JSON of a map
  int64_t images = 1;               // that it stands for and that have no line of their own
  std::vector<int64_t> order = {};  // its place among all; empty: nobody asks
};

/// KIND.jsonl of a run's folder, for a run that goes on with it: a line for each image that is done
/// or that failed, and "check", a sum of that. Each process has a file of its own,
/// KIND.rankN.jsonl, and knows those of all. Of lines with one name the last one counts; one that
/// was cut short, damaged, or is none of ours, says nothing. The sum is against damage, not
/// forgery: what a line says is data, and its files count where they are below the folder and as
/// this run, or the one that it goes on with, wrote them.
class DoneRecord {
 public:
  /// Opens or makes the record, removes what a killed run left half-written in the folder, and
  /// reads what is there. Throws: as AtomicFile, keep_own_files().
  DoneRecord(std::string folder, std::string kind, int64_t rank = 0);
  /// The files of an image that was done with this stamp; null: they are not all there as they were
  /// written, or there are none.
  std::optional<inference::ResultFiles> find(const std::string& name,
                                             const std::string& stamp) const;
  /// Whether the image is done with this stamp, with or without files.
  bool has(const std::string& name, const std::string& stamp) const;
  /// The line of an image. Throws: IoError that names `image` when it is not done with this stamp.
  config::Node line(const std::string& name,
                    const std::string& stamp,
                    const std::string& image) const;
  /// The files that an earlier run with other settings left for an image, without the new `files`
  /// and those of other images.
  inference::ResultFiles outdated(const std::string& name,
                                  const inference::ResultFiles& files) const;
  /// Removes outdated() files, and folders that are empty then.
  void remove_outdated(const std::string& name, const inference::ResultFiles& files) const;
  /// Known after the next read(). Thread: any.
  void add(const DoneImage& image);
  /// Adds the line of an image that was done before, for the process that tells. Throws: as line().
  void add_again(const DoneImage& image);
  void add_failed(const std::string& image, int code);
  /// What was added since, by any process.
  void read();
  /// The images and stamps of the lines that count, by the name of their results.
  struct Line {
    std::string image, stamp;
    inference::ResultFiles files;
    const std::string* path = nullptr;  // of the file
    int64_t place = 0;                  // in it
  };
  const std::map<std::string, Line>& lines() const { return lines_; }
  /// What other processes have added since: files of images that are done, or their names and
  /// codes.
  struct OtherImage {
    std::vector<int64_t> order;
    std::string name, stamp;
  };
  struct Others {
    inference::ResultFiles files;
    std::vector<OtherImage> images;  // those that have an order
    int64_t done = 0;
    bool has_joined = false;  // time lapses became one file: their parts are gone
    std::vector<std::pair<std::string, int>> failed;
  };
  Others of_others();

 private:
  void append(const std::string& line);
  config::Node parse(const std::string& line) const;
  void read(const std::string& path, Others* others);
  void take(const config::Node& node, Line line, Others* others);
  std::vector<std::string> paths() const;  // the newest last
  void note_owner(const std::string& name, const inference::ResultFiles& files) const;
  const std::string folder_, kind_, own_;
  std::map<std::string, int64_t> read_;  // bytes of each process's file by now
  std::map<std::string, Line> lines_;
  AppendFile file_;
  mutable std::mutex mutex_;                           // of appending, and of what follows
  mutable std::map<std::string, std::string> owners_;  // by path, the image whose file it is
};

}  // namespace cytra::pipelines
