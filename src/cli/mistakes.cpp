#include "cli/mistakes.h"

#include <algorithm>
#include <string_view>

#include "base/error.h"
#include "base/strings.h"

namespace cytra::cli {
namespace {

std::string key_in(const std::string& word) {
  const std::size_t start = std::min(word.find_first_not_of("+~"), word.size());
  return word.substr(start, word.find_first_of("=@", start) - start);
}

constexpr std::string_view kTyped = "command line '";

/// Whether a message is about a word; of a sweep it has one of the values.
bool names(const std::string& message, const std::string& word) {
  const std::string typed = message.substr(0, message.find("': "));
  return typed.starts_with(kTyped) && key_in(typed.substr(kTyped.size())) == key_in(word);
}

/// Whether a line may follow from the value of `key` being left out.
bool follows_from(const std::string& line, const std::string& key) {
  if (line.starts_with(kTyped)) return key_in(line.substr(kTyped.size())).starts_with(key + ".");
  return line.find(key) != std::string::npos;
}

}  // namespace

std::string all_mistakes(const std::string& first,
                         std::vector<std::string> overrides,
                         const std::function<void(const std::vector<std::string>&)>& check) {
  std::vector<std::string> lines, left_out;
  std::string text = first;
  while (!text.empty()) {
    const auto wrong =
        std::ranges::find_if(overrides, [&](const std::string& word) { return names(text, word); });
    for (std::string& line : split(text, '\n')) {
      const auto follows = [&](const std::string& key) { return follows_from(line, key); };
      if (!contains(lines, line) && std::ranges::none_of(left_out, follows))
        lines.push_back(std::move(line));
    }
    if (wrong == overrides.end()) break;
    left_out.push_back(key_in(*wrong));
    overrides.erase(wrong);
    text.clear();
    try {
      check(overrides);
    } catch (const ConfigError& error) {
      text = error.what();
    }
  }
  return join(lines, "\n");
}

}  // namespace cytra::cli
