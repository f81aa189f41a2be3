#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace cytra::config {
struct Node;
}
namespace cytra::io {
struct Histogram;  // io/events/event_file.h
struct Image;      // io/image.h
}  // namespace cytra::io

namespace cytra::report {
struct Findings;  // report/findings.h
}

namespace cytra::training {

using Metrics = std::map<std::string, double>;

/// What a logger is given about a run before it begins.
struct RunInfo {
  std::string folder;
  const config::Node& config;  // resolved
  int64_t step = 0;            // steps done before this process; > 0: it goes on with a checkpoint
  std::vector<std::pair<std::string, std::string>> environment;  // what it is called, and its text
};

/// Writes the numbers and pictures of a run. Registered by class name, listed under `logger`.
/// Failures to write are reported once, by a warning; only open() throws.
struct Logger {
  static constexpr const char* kKind = "logger";
  virtual ~Logger() = default;
  /// Once, before all others.
  virtual void open(const RunInfo&) {}
  virtual void log(const Metrics& metrics, int64_t epoch, int64_t step) = 0;
  /// What the next picture of this name shows, in a line.
  virtual void log_caption(const std::string& /*name*/, const std::string& /*caption*/) {}
  /// A 2D picture of 8 bit, grey or RGB.
  virtual void log_image(const std::string& /*name*/, const io::Image&, int64_t /*step*/) {}
  virtual void log_histogram(const std::string& /*name*/, const io::Histogram&, int64_t /*step*/) {}
  virtual void log_text(const std::string& /*name*/,
                        const std::string& /*text*/,
                        int64_t /*step*/) {}
  /// What a validation has found beside its metrics.
  virtual void log_findings(const report::Findings&, int64_t /*step*/) {}
  /// Called when the training has ended, also early, with these results; none when it failed.
  virtual void close(const Metrics& /*results*/) {}
};

}  // namespace cytra::training
