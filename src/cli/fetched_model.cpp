#include "cli/fetched_model.h"

#include <cerrno>
#include <filesystem>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>

#include "base/cache_folder.h"
#include "base/child_process.h"
#include "base/descriptor.h"
#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/sha256.h"
#include "base/strings.h"

namespace cytra::cli {
namespace {

namespace fs = std::filesystem;

constexpr char kMostBytes[] = "16000000000";
constexpr std::string_view kMark = "@sha256:";

struct Address {
  std::string url, name, digits;
};

Address parsed(const std::string& key, const std::string& text) {
  const std::size_t mark = text.rfind(kMark);
  Address address{text.substr(0, mark), "", ""};
  if (mark != std::string::npos) address.digits = text.substr(mark + kMark.size());
  const std::string path = address.url.substr(0, address.url.find_first_of("?#"));
  address.name = path.substr(path.rfind('/') + 1);
  if (!text.starts_with("https://") || address.digits.size() != 64 ||
      address.digits.find_first_not_of("0123456789abcdef") != std::string::npos)
    throw ConfigError(
        "{}={}: expected https://HOST/NAME{}DIGITS, with the 64 digits that `sha256sum NAME` "
        "prints",
        key,
        text,
        kMark);
  if (address.name.empty() || address.name.starts_with('.') ||
      path.find('/', std::string_view("https://").size()) == std::string::npos)
    throw ConfigError("{}={}: expected an address that ends with a file's name", key, text);
  return address;
}

/// Runs curl; returns what it wrote to its stderr, a line, and how it ended.
std::pair<ChildEnd, std::string> run_curl(const std::string& url, const std::string& file) {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) throw_errno("start", "curl", errno);
  const Descriptor read_end(ends[0]);
  Descriptor write_end(ends[1]);
  ChildOptions child;
  child.program = "/usr/bin/env";
  child.arguments = {"env",
                     "curl",
                     "--fail",
                     "--location",
                     "--proto",
                     "=https",
                     "--silent",
                     "--show-error",
                     "--max-filesize",
                     kMostBytes,
                     "--connect-timeout",
                     "30",
                     "--speed-time",
                     "60",
                     "--speed-limit",
                     "100",
                     "--retry",
                     "3",
                     "--continue-at",
                     "-",
                     "--output",
                     file,
                     "--",
                     url};
  child.out = child.err = write_end.get();
  ::sigemptyset(&child.blocked);
  const pid_t pid = start_child(child);
  if (pid < 0) throw_errno("start", "curl", errno);
  write_end = Descriptor();
  std::string said;
  char buffer[4096];
  for (ssize_t count = 0; (count = ::read(read_end.get(), buffer, sizeof buffer)) != 0;) {
    if (count > 0) said.append(buffer, static_cast<std::size_t>(count));
    if (count < 0 && errno != EINTR) break;
  }
  std::optional<ChildEnd> end;
  while (!(end = end_of(pid))) ::usleep(1000);
  return {*end, said};
}

/// Fetches to `part`, which may hold the beginning.
void fetch(const std::string& key, const Address& address, const fs::path& part) {
  constexpr int kNotFound = 22, kMissing = 127, kRangeRefused = 33, kTooLarge = 63;
  const Spinner spinner("fetching " + address.url);
  auto [end, said] = run_curl(address.url, part.string());
  if (end.exit_code == kRangeRefused) {  // the server can't go on where the last one ended
    write_file(part.string(), "");
    std::tie(end, said) = run_curl(address.url, part.string());
  }
  if (end.exit_code == 0) return;
  if (end.exit_code == kMissing)
    throw IoError("{}={}: needs the program curl, which is not installed", key, address.url);
  const std::string reason = said.empty() ? end.text() : trim(said);
  if (end.exit_code == kNotFound || end.exit_code == kTooLarge)
    throw ConfigError("{}={}: {}", key, address.url, reason);
  throw IoError("{}={}: {}", key, address.url, reason);
}

}  // namespace

bool is_address(const std::string& path) {
  return path.starts_with("https://") || path.starts_with("http://");
}

std::string fetched_model(const std::string& key, const std::string& text) {
  const Address address = parsed(key, text);
  const std::string cache = cache_folder();
  if (cache.empty())
    throw ConfigError("{}={}: set HOME or XDG_CACHE_HOME: a folder to keep it", key, text);
  const fs::path folder = fs::path(cache) / "models" / address.digits, file = folder / address.name;
  const auto is_there = [&] {  // what others may write to is looked at each time
    return file_exists(file) && sha256_of_file(file.string()) == address.digits;
  };
  if (is_there()) return file.string();
  make_folders(folder.string());
  const fs::path part = folder / (address.name + ".part");
  const Descriptor lock(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (lock.get() < 0 || ::flock(lock.get(), LOCK_EX) != 0)
    throw_errno("lock", folder.string(), errno);
  if (is_there()) return file.string();  // another run was faster
  fetch(key, address, part);
  if (const std::string digits = sha256_of_file(part.string()); digits != address.digits) {
    remove_quietly(part);
    throw DataError("{}={}: the file that came has the checksum {}", key, text, digits);
  }
  if (::rename(part.c_str(), file.c_str()) != 0) throw_errno("write", file.string(), errno);
  log::info("{} is kept as {}", address.url, file.string());
  return file.string();
}

}  // namespace cytra::cli
