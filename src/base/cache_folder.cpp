#include "base/cache_folder.h"

#include <cstdlib>

namespace cytra {

std::string cache_folder() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && cache[0] == '/') return std::string(cache) + "/cytra";
  const char* home = std::getenv("HOME");
  return home != nullptr && home[0] == '/' ? std::string(home) + "/.cache/cytra" : "";
}

}  // namespace cytra
