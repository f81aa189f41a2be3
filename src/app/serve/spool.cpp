#include "app/serve/spool.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>
#include <sys/statvfs.h>

#include "base/error.h"

namespace cytra::app {
namespace fs = std::filesystem;

Spool::Spool(int64_t bytes) {
  struct statvfs room {};
  const bool fits = ::statvfs("/dev/shm", &room) == 0 &&
                    static_cast<double>(room.f_bavail) * static_cast<double>(room.f_frsize) >
                        static_cast<double>(bytes);
  std::error_code error;
  std::string parent = fits ? "/dev/shm" : fs::temp_directory_path(error).string();
  if (parent.empty()) parent = "/tmp";
  folder_ = parent + "/cytra-serve-XXXXXX";
  if (::mkdtemp(folder_.data()) == nullptr) throw_errno("can't make a folder", folder_, errno);
}

Spool::~Spool() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

std::unique_ptr<Spool::Place> Spool::take() {
  int64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) free_.push_back(made_++);
    number = free_.back();
    free_.pop_back();
  }
  const std::string folder = fmt::format("{}/{}", folder_, number);
  std::error_code error;
  fs::create_directory(folder, error);
  auto place = std::make_unique<Place>(*this, number, folder);
  if (error) throw_errno("can't make a folder", folder, error.value());
  return place;
}

Spool::Place::Place(Spool& spool, int64_t number, std::string folder)
    : spool_(spool), number_(number), folder_(std::move(folder)) {}

Spool::Place::~Place() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
  const std::lock_guard lock(spool_.mutex_);
  spool_.free_.push_back(number_);
}

}  // namespace cytra::app
