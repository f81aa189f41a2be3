#include "base/version.h"

#include "cytra_version.h"  // written by cmake/version.cmake at build time

namespace cytra {
const char* version() {
  return CYTRA_VERSION;
}
}  // namespace cytra
