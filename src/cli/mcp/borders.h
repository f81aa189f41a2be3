#pragma once
// Which files the tools of `cytra mcp` may use.
#include <string>
#include <vector>

namespace cytra::cli::mcp {

/// The folder in which the tools read and write, and folders that they only read.
class Borders {
 public:
  /// Throws: ConfigError for what is no folder.
  Borders(const std::string& folder, const std::vector<std::string>& readable);
  const std::string& folder() const { return folder_; }
  /// The folders that are only read.
  const std::vector<std::string>& readable() const { return readable_; }
  /// Throws: ConfigError that names the path, where it leads out of the folder: by `..`, by a link,
  /// or because it begins elsewhere. A relative path begins in the folder.
  void expect_within(const std::string& path) const;
  /// Does the same for what is only read, which may be in the readable folders, too.
  void expect_readable(const std::string& path) const;
  /// Throws: ConfigError for what is no override, for Hydra's own settings, for references
  /// (${...}), and for values that may be the path of a file outside.
  void expect_override(const std::string& word) const;
  /// Lets the kernel refuse other files to this process and to those that it starts: reading all
  /// but the system's and Cytra's own, and writing all others. Returns whether the kernel can do
  /// that. Source: Landlock, https://docs.kernel.org/userspace-api/landlock.html.
  bool enforce() const;

 private:
  void expect_in(const std::vector<std::string>& folders, const std::string& path) const;
  std::string folder_;
  std::vector<std::string> readable_;
};

}  // namespace cytra::cli::mcp
