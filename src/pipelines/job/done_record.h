#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/append_file.h"
#include "config/node.h"

namespace cytra::pipelines {

/// A file of JSON lines, one for each image that is done: "name" of its results, "stamp" of all
/// they depend on, what else its writer puts there, and "check", a sum of all that. Of lines with
/// one name the last one counts; one that was cut short, damaged, or is none of ours, says nothing.
/// Holds the places of lines alone. The sum is against damage, not forgery: who reads line() takes
/// what it says for data.
class DoneRecord {
 public:
  /// Opens or makes it and reads what is there. Throws: as AtomicFile.
  explicit DoneRecord(std::string path);
  /// `line`: JSON of a map. Known after the next read().
  void append(std::string_view line);
  void read();
  bool has(const std::string& name, const std::string& stamp) const;
  /// Throws: IoError that names `image` when it is not done with this stamp.
  config::Node line(const std::string& name,
                    const std::string& stamp,
                    const std::string& image) const;

 private:
  config::Node parse(const std::string& line) const;
  struct Done {
    std::string stamp;
    int64_t place = 0;  // of its line
  };
  const std::string path_;
  AppendFile file_;
  std::map<std::string, Done> done_;  // by name
};

}  // namespace cytra::pipelines
