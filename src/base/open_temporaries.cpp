#include "base/open_temporaries.h"

#include <mutex>
#include <set>

#include <unistd.h>

#include "base/files.h"

namespace cytra {
namespace {

/// Never destroyed: an exit may come from any thread.
struct OpenTemporaries {
  std::mutex mutex;
  std::set<std::string> paths;
  static OpenTemporaries& instance() {
    static auto* all = new OpenTemporaries;
    return *all;
  }
};

}  // namespace

void add_open_temporary(const std::string& path) {
  OpenTemporaries& all = OpenTemporaries::instance();
  const std::lock_guard lock(all.mutex);
  all.paths.insert(path);
}

void drop_open_temporary(const std::string& path) {
  OpenTemporaries& all = OpenTemporaries::instance();
  const std::lock_guard lock(all.mutex);
  all.paths.erase(path);
}

void remove_open_temporaries() {
  OpenTemporaries& all = OpenTemporaries::instance();
  const std::lock_guard lock(all.mutex);
  for (const std::string& path : all.paths) {
    ::unlink(path.c_str());
    remove_all_quietly(path + ".d");
  }
}

}  // namespace cytra
