#include "nn/exported/message.h"

#include <c10/util/Exception.h>

#include "base/strings.h"

namespace cytra::nn {

std::string brief(const std::exception& error) {
  const auto* torch = dynamic_cast<const c10::Error*>(&error);
  const std::string what = torch == nullptr ? error.what() : torch->what_without_backtrace();
  std::string line = split(what, '\n').front();
  for (const std::string& one : split(what, '\n')) {  // the interpreter's last has the message
    const std::size_t kind = one.find("Error: ");     // RuntimeError, builtins.ValueError, ...
    if (kind != std::string::npos && one.find(' ') == kind + 6) line = one.substr(kind + 7);
  }
  return printable(trim(line), 300);
}

}  // namespace cytra::nn
