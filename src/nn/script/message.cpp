#include "nn/script/message.h"

#include <c10/util/Exception.h>

#include "base/strings.h"

namespace cytra::nn {

std::string brief(const std::exception& error) {
  const auto* torch = dynamic_cast<const c10::Error*>(&error);
  const std::string what = torch == nullptr ? error.what() : torch->what_without_backtrace();
  std::string line = split(what, '\n').front();
  for (const std::string& one : split(what, '\n')) {  // the interpreter's last has the message
    if (starts_with(one, "RuntimeError: ")) line = one.substr(14);
  }
  return printable(trim(line), 300);
}

}  // namespace cytra::nn
