#pragma once
#include <functional>
#include <string>
#include <string_view>

namespace cytra {

/// Opens or makes a file to append to. Returns its descriptor; -1, and errno, where the system
/// refuses.
/// Throws: ConfigError for what is no regular file; a link is not followed, as somebody else may
/// have put it there.
int open_to_append(const std::string& path);

/// A file of records that only grows: logs, metrics. Each record is one write(2), unbuffered, so a
/// killed process leaves whole records. A record that can't be written (disk full) is left out
/// whole and the first one is reported by a warning: a training does not end for its log.
class AppendFile {
 public:
  /// Opens or makes the file, and removes what a killed process left of rewrite().
  /// Throws: what AtomicFile and open_to_append() throw.
  explicit AppendFile(std::string path);
  ~AppendFile();
  AppendFile& operator=(AppendFile&&) = delete;

  void append(std::string_view record);
  /// Replaces the text file by a changed copy, with `head` before it. `change` gets each line
  /// without its end, and returns false for a line to leave out; a last line without an end is
  /// left out. Returns false where it was not possible: the file is unchanged.
  bool rewrite(std::string_view head, const std::function<bool(std::string& line)>& change);

 private:
  void open();
  void warn(const std::string& why);
  std::string path_;
  int descriptor_ = -1;
  bool warned_ = false;
};

}  // namespace cytra
