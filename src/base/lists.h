#pragma once
// Short words for loops over lists.
#include <algorithm>
#include <functional>
#include <type_traits>
#include <vector>

namespace cytra {

/// Whether a list has a value.
bool contains(const auto& list, const auto& value) {
  return std::ranges::find(list, value) != std::ranges::end(list);
}

/// What a function or a member makes of each item: `mapped(names, stem_of)`, `mapped(models,
/// &Model::path)`.
auto mapped(auto&& list, auto&& of) {
  std::vector<std::decay_t<decltype(std::invoke(of, *std::begin(list)))>> made;
  if constexpr (requires { list.size(); }) made.reserve(static_cast<std::size_t>(list.size()));
  for (auto&& item : list) made.push_back(std::invoke(of, item));
  return made;
}

/// The keys of a map, in its order.
auto keys_of(const auto& map) {
  return mapped(map, [](const auto& entry) { return entry.first; });
}

}  // namespace cytra
