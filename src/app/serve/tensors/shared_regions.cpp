#include "app/serve/tensors/shared_regions.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/strings.h"

namespace cytra::app {

constexpr std::size_t kMostRegions = 1024, kLongestName = 255;

namespace {

/// Copies bytes of a region by pread() or pwrite(). False: it ends before them.
template <class Call, class Byte>
bool copied(const Call& call, int file, Byte* bytes, std::size_t count, int64_t offset) {
  for (std::size_t done = 0; done < count;) {
    const ssize_t more =
        call(file, bytes + done, count - done, offset + static_cast<int64_t>(done));
    if (more < 0 && errno == EINTR) continue;
    if (more <= 0) return false;
    done += static_cast<std::size_t>(more);
  }
  return true;
}

}  // namespace

void SharedRegions::add(const std::string& name, const Region& region) {
  const auto fail = [&](const std::string& why) {
    throw HttpError(400, "shared memory {}: {}", printable(region.key), why);
  };
  if (name.size() > kLongestName) fail(fmt::format("a name of {} bytes", name.size()));
  const std::string key = region.key.substr(region.key.starts_with("/") ? 1 : 0);
  if (key.empty() || key == "." || key == ".." || key.find('/') != std::string::npos ||
      key.find('\0') != std::string::npos)
    fail("expected the name of a region: /name");
  const auto file =
      std::make_shared<const Descriptor>(::shm_open(("/" + key).c_str(), O_RDWR | O_CLOEXEC, 0));
  struct stat status {};
  if (file->get() < 0 || ::fstat(file->get(), &status) != 0) fail(std::strerror(errno));
  if (status.st_uid != ::geteuid()) fail("belongs to another user than the server");
  if (region.offset < 0 || region.bytes < 1 || region.offset > status.st_size ||
      region.bytes > status.st_size - region.offset)
    fail(fmt::format(
        "{} bytes from {}, but it has {}", region.bytes, region.offset, status.st_size));
  const std::lock_guard lock(mutex_);
  if (regions_.count(name) > 0) throw HttpError(400, "{}: is registered already", printable(name));
  if (regions_.size() >= kMostRegions) fail("too many are registered");
  regions_.emplace(name, Open{region, file});
}

void SharedRegions::remove(const std::string& name) {
  const std::lock_guard lock(mutex_);
  if (name.empty()) {
    regions_.clear();
  } else {
    regions_.erase(name);
  }
}

std::map<std::string, SharedRegions::Region> SharedRegions::list(const std::string& name) const {
  std::map<std::string, Region> found;
  const std::lock_guard lock(mutex_);
  for (const auto& [own, open] : regions_)
    if (name.empty() || own == name) found.emplace(own, open.region);
  if (!name.empty() && found.empty())
    throw HttpError(400, "{}: no such region is registered", printable(name));
  return found;
}

SharedRegions::Open SharedRegions::find(const std::string& name,
                                        int64_t offset,
                                        int64_t bytes) const {
  const std::lock_guard lock(mutex_);
  const auto found = regions_.find(name);
  if (found == regions_.end())
    throw HttpError(400, "{}: no such region is registered", printable(name));
  const Region& region = found->second.region;
  if (offset < 0 || bytes < 0 || offset > region.bytes || bytes > region.bytes - offset) {
    throw HttpError(400,
                    "{}: {} bytes from {}, but the region has {}",
                    printable(name),
                    bytes,
                    offset,
                    region.bytes);
  }
  return found->second;
}

std::shared_ptr<const RequestBudget::Share> SharedRegions::count(int64_t bytes) const {
  if (bytes > budget_.most_bytes())
    throw HttpError(413, "{} bytes are more than limits.requests_mb", bytes);
  std::shared_ptr<const RequestBudget::Share> share = budget_.take(bytes, 0);
  if (!share) throw HttpError(503, "the server is full, expected another try later");
  return share;
}

SharedRegions::Content SharedRegions::read(const std::string& name,
                                           int64_t offset,
                                           int64_t bytes) const {
  const Open open = find(name, offset, bytes);
  std::shared_ptr<const RequestBudget::Share> share = count(bytes);
  std::string content(static_cast<std::size_t>(bytes), '\0');
  if (!copied(
          ::pread, open.file->get(), content.data(), content.size(), open.region.offset + offset))
    throw HttpError(400, "{}: the region became smaller", name);
  return {std::move(content), std::move(share)};
}

void SharedRegions::write(const std::string& name, int64_t offset, const std::string& bytes) const {
  const Open open = find(name, offset, std::ssize(bytes));
  if (!copied(::pwrite, open.file->get(), bytes.data(), bytes.size(), open.region.offset + offset))
    throw HttpError(400, "{}: the region can't be written", name);
}

}  // namespace cytra::app
