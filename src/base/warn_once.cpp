#include "base/warn_once.h"

#include <mutex>
#include <set>

#include "base/log.h"

namespace cytra {

void warn_once(const std::string& line) {
  static std::mutex mutex;
  static std::set<std::string> said;
  const std::lock_guard<std::mutex> lock(mutex);
  if (said.insert(line).second) log::warn("{}", line);
}

}  // namespace cytra
