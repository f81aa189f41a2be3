#include "inference/openvino/brief.h"

#include <sstream>

#include "base/strings.h"

namespace cytra::inference {

std::string brief_openvino(const std::string& what) {
  std::istringstream lines(what);
  std::string brief;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || starts_with(line, "Exception from ")) continue;
    brief += (brief.empty() ? "" : " ") + line;
  }
  return brief.substr(0, 300);
}

}  // namespace cytra::inference
