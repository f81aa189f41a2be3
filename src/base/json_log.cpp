#include "base/json_log.h"

#include <atomic>
#include <cstdio>

#include <fmt/format.h>

namespace cytra::log {
namespace {

std::atomic<bool> writes_json{false};

}  // namespace

void set_json() {
  writes_json = true;
}

bool is_json() {
  return writes_json;
}

std::string json_quote(std::string_view text) {
  std::string quoted = "\"";
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') {
      quoted += '\\';
      quoted += letter;
    } else if (letter == '\n') {
      quoted += "\\n";
    } else if (static_cast<unsigned char>(letter) < ' ') {
      quoted += fmt::format("\\u{:04x}", static_cast<unsigned>(letter));
    } else {
      quoted += letter;
    }
  }
  return quoted + '"';
}

void write_json(const std::string& object) {
  const std::string line = object + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace cytra::log
