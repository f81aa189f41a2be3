#pragma once
// libFuzzer targets: whatever the input, the result is a value or one clear error.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/error.h"

namespace cytra::fuzz {

inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

template <class Clear = ConfigError, class Call>
void run(Call call) {
  try {
    call();
  } catch (const Clear& error) {
    require(error.what()[0] != '\0', "an error says something");
  }
}

}  // namespace cytra::fuzz
