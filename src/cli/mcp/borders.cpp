#include "cli/mcp/borders.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"
#include "base/shared_library.h"
#include "base/strings.h"
#include "cli/mcp/job.h"
#include "cli/models_at_hand.h"
#include "cli/program.h"
#include "config/overrides/overrides.h"

namespace cytra::cli::mcp {
namespace {

namespace fs = std::filesystem;
using config::Node;

/// The keys whose files are read and never written.
constexpr const char* kInputs[] = {
    "data.path", "checkpoint.ckpt_path", "checkpoint.config", "model.file", "loss.file"};

/// The folder without links. Throws: ConfigError.
std::string real_folder(const std::string& path) {
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  if (error || !fs::is_directory(real, error)) throw ConfigError(path + ": no such folder");
  return real.string();
}

bool is_within(const std::string& path, const std::string& folder) {
  return path == folder || folder == "/" || path.starts_with(folder + "/");
}

/// The path without links. Throws: ConfigError for a link to nothing, which a program could fill.
fs::path without_links(const fs::path& path) {
  std::error_code error;
  fs::path so_far;
  for (const fs::path& part : path) {
    so_far /= part;
    if (fs::is_symlink(so_far, error) && !fs::exists(so_far, error))
      throw ConfigError("{}: a link to nothing that can be read", so_far.string());
  }
  const fs::path real = fs::weakly_canonical(path, error);
  const bool names_nothing =
      error == std::errc::filename_too_long || error == std::errc::not_a_directory;
  if (error && !names_nothing) throw ConfigError("{}: {}", path.string(), error.message());
  return error ? path.lexically_normal() : real;
}

void each_text(const Node& node, const auto& check) {
  if (node.kind == config::Kind::string) check(node.string);
  for (const Node& item : node.list) each_text(item, check);
  for (const auto& [key, child] : node.map) each_text(child, check);
}

/// The folders of the libraries that a library loads, torch's among them: the loader lists them.
void add_library_folders(const std::string& library, std::set<std::string>& folders) {
  constexpr const char* kLoader = "/lib64/ld-linux-x86-64.so.2";
  Job job({kLoader, {kLoader, "--list", library}, {}});
  job.wait();
  for (const std::string& line : split(job.output(), '\n')) {
    const std::size_t begin = line.find("=> /");  // "libc.so.6 => /lib/libc.so.6 (0x7)"
    if (begin == std::string::npos) continue;
    const fs::path path = line.substr(begin + 3, line.rfind(" (") - begin - 3);
    std::error_code error;
    for (const fs::path& file : {path, fs::canonical(path, error)})  // it may be a link
      folders.insert(file.parent_path().string());
  }
}

/// Cytra's programs, configs and libraries, and the libraries that those load.
std::set<std::string> own_folders() {
  const std::string libraries = fs::path(path_beside(&run, "")).parent_path().string();
  std::set<std::string> folders{program_folder(), config_folder(), libraries};
  for (const ModelAtHand& model : models_at_hand())
    folders.insert(fs::path(model.file).parent_path().string());
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(libraries, error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("libcytra") && name.ends_with(".so"))
      add_library_folders(entry.path().string(), folders);
  }
  return folders;
}

/// The kernel's numbers, which the headers of older systems lack in part.
namespace landlock {

constexpr uint64_t kExecute = 1, kWriteFile = 2, kReadFile = 4, kReadFolder = 8;
constexpr uint64_t kRead = kExecute | kReadFile | kReadFolder;
struct Ruleset {
  uint64_t handled;
};
struct PathRule {
  uint64_t allowed;
  int folder;
} __attribute__((packed));

/// The newest form that the kernel knows, from 1; 0: none.
int version() {
  const long known = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, 1);
  return known < 0 ? 0 : static_cast<int>(known);
}

/// All rights to files but those of devices' ioctl(), which GPUs need.
uint64_t all_rights() {
  const int newest = version();
  return (uint64_t{1} << (newest >= 3 ? 15 : newest == 2 ? 14 : 13)) - 1;
}

void allow(int ruleset, const std::string& folder, uint64_t rights) {
  const int opened = ::open(folder.c_str(), O_PATH | O_CLOEXEC | O_DIRECTORY);
  if (opened < 0) return;  // a system that has no such folder
  const PathRule rule{rights, opened};
  ::syscall(SYS_landlock_add_rule, ruleset, 1, &rule, 0);
  ::close(opened);
}

}  // namespace landlock
}  // namespace

Borders::Borders(const std::string& folder, const std::vector<std::string>& readable)
    : folder_(real_folder(folder)) {
  for (const std::string& path : readable) readable_.push_back(real_folder(path));
}

void Borders::expect_in(const std::vector<std::string>& folders, const std::string& path) const {
  const fs::path given(path);
  const bool climbs = std::ranges::any_of(given, [](const fs::path& part) { return part == ".."; });
  if (climbs || path.starts_with("~"))
    throw ConfigError("{}: expected a path below {} without '..' and '~'", path, folder_);
  const std::string real = without_links(fs::path(folder_) / given).string();
  for (const std::string& folder : folders)
    if (is_within(real, folder)) return;
  throw ConfigError("{}: {} is outside of {}",
                    path,
                    real == path ? "it" : "it is " + real + ", which",
                    join(folders, " and "));
}

void Borders::expect_within(const std::string& path) const {
  expect_in({folder_}, path);
  if (fs::path(path).is_absolute() && without_links(path) == folder_)  // runs get FOLDER-1 then
    throw ConfigError("{}: expected a path below it", path);
}

void Borders::expect_readable(const std::string& path) const {
  std::vector<std::string> folders{folder_};
  folders.insert(folders.end(), readable_.begin(), readable_.end());
  expect_in(folders, path);
}

void Borders::expect_override(const std::string& word) const {
  if (word.empty() || word[0] == '-')
    throw ConfigError("'{}': expected key=value or group=option, not a flag", word);
  if (word.find("${") != std::string::npos)
    throw ConfigError(word + ": references (${...}) are not taken here; write the value itself");
  const config::Override parsed = config::parse_override(word);
  if (parsed.is_hydra())
    throw ConfigError(
        word + ": Hydra's own settings are not taken here; a run's folder is paths.output_dir");
  expect_within(parsed.key);
  const bool is_input = std::ranges::find(kInputs, parsed.key) != std::end(kInputs);
  const auto check = [&](const std::string& text) {
    try {
      is_input ? expect_readable(text) : expect_within(text);
    } catch (const ConfigError& error) {
      throw ConfigError("{}: {}", parsed.key, error.what());
    }
  };
  for (const Node& value : parsed.values) each_text(value, check);
  for (const std::string& text : parsed.texts) check(text);
}

bool Borders::enforce() const {
  if (landlock::version() == 0) return false;
  const uint64_t all = landlock::all_rights();
  const std::set<std::string> own = own_folders();
  const landlock::Ruleset handled{all};
  const int ruleset =
      static_cast<int>(::syscall(SYS_landlock_create_ruleset, &handled, sizeof handled, 0));
  if (ruleset < 0) return false;
  landlock::allow(ruleset, folder_, all);
  for (const std::string& folder : readable_)
    landlock::allow(ruleset, folder, landlock::kReadFile | landlock::kReadFolder);
  for (const char* folder :
       {"/usr", "/lib", "/lib64", "/bin", "/sbin", "/etc", "/opt", "/run", "/sys"})
    landlock::allow(ruleset, folder, landlock::kRead);
  for (const std::string& folder : own) landlock::allow(ruleset, folder, landlock::kRead);
  landlock::allow(ruleset, "/dev/shm", all);    // memory that processes of a training share
  for (const char* folder : {"/dev", "/proc"})  // /dev/null, GPUs
    landlock::allow(
        ruleset, folder, landlock::kReadFile | landlock::kReadFolder | landlock::kWriteFile);
  const bool is_done = ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
                       ::syscall(SYS_landlock_restrict_self, ruleset, 0) == 0;
  ::close(ruleset);
  return is_done;
}

}  // namespace cytra::cli::mcp
