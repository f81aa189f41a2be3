#pragma once
// JSON that clients send.
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/serve/http/http.h"

namespace cytra::app {

constexpr std::size_t kMostWords = 1 << 20;    // bytes of JSON without a tensor
constexpr std::size_t kMostTensor = 16 << 20;  // bytes of JSON with one

/// Reads a body, in a time that grows as its length. Throws: HttpError (400) for what is no JSON,
/// is nested more than 32 deep or has more than 1000 names; (413) above `most` bytes.
Json parse_body(const std::string& text, std::size_t most = kMostWords);
/// Reads a body that is an object; an empty body stands for an empty one.
Json parse_object(const std::string& text, std::size_t most = kMostWords);
/// The object "parameters" of an object; an empty one where there is none. Throws: HttpError.
const Json& parameters_of(const Json& object);
[[noreturn]] void throw_member(const char* name, const char* expected, bool is_missing);
/// Whether it is a whole number that int64_t holds, or a list of such; 64.0 is one.
bool is_whole(const Json& value);

/// A member of a JSON object. Throws: HttpError naming it where it has another type.
template <class T>
T json_member(const Json& object, const char* name, const char* expected) {
  const auto found = object.find(name);
  if (found == object.end()) throw_member(name, expected, true);
  if constexpr (std::is_same_v<T, int64_t> || std::is_same_v<T, std::vector<int64_t>>)
    if (!is_whole(*found)) throw_member(name, expected, false);
  try {
    return found->get<T>();
  } catch (const Json::exception&) {
    throw_member(name, expected, false);
  }
}

/// A member of a JSON object; `fallback` where it is missing.
template <class T>
T json_member_or(const Json& object, const char* name, const char* expected, T fallback) {
  return object.contains(name) ? json_member<T>(object, name, expected) : fallback;
}

}  // namespace cytra::app
