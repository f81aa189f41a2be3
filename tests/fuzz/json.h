#pragma once
// Mutations of JSON for libFuzzer: values that change, where changed bytes are mostly no JSON.
#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

extern "C" std::size_t LLVMFuzzerMutate(uint8_t* data, std::size_t size, std::size_t most);

namespace cytra::fuzz {

using Json = nlohmann::ordered_json;

/// Every value of a tree, the tree first.
inline void add_values(Json& value, std::vector<Json*>& all) {
  all.push_back(&value);
  if (value.is_structured())
    for (Json& part : value) add_values(part, all);
}

/// Changes a value to an odd one, to one of another place, or takes away what it holds last.
inline void mutate(Json& tree, std::mt19937& random) {
  static const std::vector<Json> odd{
      nullptr, true, "",    "a/../b",  0,         1,    -1,   3,   0.5,           1e300,
      -1e-300, 7,    65536, INT64_MIN, INT64_MAX, "\n", "2d", "x", Json::array(), Json::object()};
  std::vector<Json*> all;
  add_values(tree, all);
  Json& value = *all[random() % all.size()];
  const Json other = *all[random() % all.size()];
  const unsigned how = random() % 4;
  if (how == 0 && value.is_structured() && !value.empty()) {
    value.erase(std::prev(value.end()));
  } else if (how == 1 && value.is_array()) {
    value.push_back(value.empty() ? other : value[random() % value.size()]);
  } else {
    value = how == 2 && other.size() < 100 ? other : odd[random() % odd.size()];
  }
}

/// A mutation of JSON and of what follows it after a line "@@": of values mostly, else of bytes.
inline std::size_t mutate_text(uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
  std::mt19937 random(seed);
  const std::string text(reinterpret_cast<const char*>(data), size);
  std::size_t begin = 0, end = std::min(text.find("\n@@\n"), size);
  if (end < size && random() % 3 == 0) begin = end + 4, end = size;
  Json tree = Json::parse(text.substr(begin, end - begin), nullptr, false);
  if (tree.is_discarded() || random() % 8 == 0) return LLVMFuzzerMutate(data, size, most);
  for (unsigned times = 1 + random() % 3; times > 0; --times) mutate(tree, random);
  const std::string changed = text.substr(0, begin) +
                              tree.dump(-1, ' ', false, Json::error_handler_t::replace) +
                              text.substr(end);
  if (changed.size() > most) return LLVMFuzzerMutate(data, size, most);
  std::memcpy(data, changed.data(), changed.size());
  return changed.size();
}

}  // namespace cytra::fuzz
