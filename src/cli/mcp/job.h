#pragma once
// A program that works for a tool of `cytra mcp`.
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <poll.h>
#include <sys/types.h>

#include "base/child_process.h"

namespace cytra::cli::mcp {

struct JobCommand {
  std::string program;                   // path of the file to execute
  std::vector<std::string> arguments;    // argv, the name first
  std::vector<std::string> environment;  // "NAME=value" each; none: this process's own
};

/// A message that the program has written: `message` of docs/schema.json, or a line of a library.
struct JobMessage {
  std::string level, text;  // "info", "warning", "error", "debug"; "" for a library's
};

/// How far the program says it is: `progress` of docs/schema.json.
struct JobProgress {
  std::string label, note;
  int64_t done = 0, total = -1;  // total < 0: unknown
};

/// A running program, with what it has written so far. It does not outlive the object.
class Job {
 public:
  /// Throws: IoError when it can't be started.
  explicit Job(const JobCommand& command);
  ~Job();
  Job& operator=(Job&&) = delete;

  /// Adds what poll() has to wait for.
  void add_to(std::vector<pollfd>& files) const;
  /// Takes what the program has written, and whether it has ended.
  void read();
  void wait();
  /// Tells the program to end. After half a minute, in which a training saves its state, read()
  /// ends it.
  void stop();

  bool was_stopped() const { return stopped_.has_value(); }
  const std::optional<ChildEnd>& end() const { return end_; }
  const std::string& output() const { return output_; }  // its stdout
  const std::vector<JobMessage>& messages() const { return messages_; }
  const std::optional<JobProgress>& progress() const { return progress_; }

 private:
  void close_files();
  void take_line(const std::string& line);
  pid_t child_ = -1;
  int out_ = -1, err_ = -1;
  std::string output_, line_;
  std::vector<JobMessage> messages_;
  std::optional<JobProgress> progress_;
  std::optional<ChildEnd> end_;
  std::optional<std::chrono::steady_clock::time_point> stopped_;
};

}  // namespace cytra::cli::mcp
