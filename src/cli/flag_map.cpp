#include "cli/flag_map.h"

#include <algorithm>

#include "base/strings.h"
#include "config/overrides/overrides.h"

namespace cytra::cli {
namespace {

/// "front" of "front=a.ckpt"; "" for other words.
std::string name_before(const std::string& word) {
  const std::string name = word.substr(0, word.find('='));
  const bool is_plain =
      std::ranges::all_of(name, [](char c) { return is_letter(c) || is_digit(c) || c == '_'; });
  return is_plain && name.size() < word.size() ? name : "";
}

std::string override_of(const std::string& key, const std::string& value) {
  return key + "=" + config::override_text(config::Node::make_string(value));
}

}  // namespace

FlagMap::FlagMap(const std::string& flag,
                 const std::string& key,
                 const std::string& map,
                 int argc,
                 char** argv) {
  bool is_after = false, is_in_map = false;
  for (int i = 0; i < argc; ++i) {
    std::string word = argv[i];
    if (word.starts_with(flag + "=")) {
      word.erase(0, flag.size() + 1);
      is_after = true;
    } else if (word == flag && i + 1 < argc) {
      is_after = true;
      continue;
    }
    const std::string name = name_before(word);
    is_in_map = !name.empty() && (is_after || is_in_map);
    if (is_in_map) {
      words_.push_back(override_of("++" + map + "." + name, word.substr(name.size() + 1)));
    } else {
      words_.push_back(is_after ? override_of(key, word) : word);
    }
    is_after = false;
  }
  for (std::string& word : words_) pointers_.push_back(word.data());
  pointers_.push_back(nullptr);
}

}  // namespace cytra::cli
