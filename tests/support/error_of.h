#pragma once
#include <string>

#include "base/error.h"

namespace cytra::test {

/// The message of the ConfigError that `action` throws, or "".
template <class Action>
std::string error_of(const Action& action) {
  try {
    action();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

}  // namespace cytra::test
