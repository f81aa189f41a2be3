#pragma once
#include <string>

namespace cytra {

/// The message of the E that `action` throws; "" when it throws nothing. Anything else passes on.
template <class E, class Action>
std::string message_of(const Action& action) {
  try {
    action();
  } catch (const E& error) {
    return error.what();
  }
  return "";
}

}  // namespace cytra
