#pragma once
// JSON that clients send.
#include <string>

#include <nlohmann/json.hpp>

#include "app/serve/http.h"

namespace cytra::app {

using Json = nlohmann::ordered_json;

/// Reads a body. Throws: HttpError (400) for what is no JSON or is nested more than 32 deep; (413)
/// above 16 MB, as a number takes 16 bytes of memory.
Json parse_body(const std::string& text);
/// The object "parameters" of an object; an empty one where there is none. Throws: HttpError.
const Json& parameters_of(const Json& object);
[[noreturn]] void throw_member(const char* name, const char* expected, bool is_missing);

/// A member of a JSON object. Throws: HttpError naming it where it has another type.
template <class T>
T json_member(const Json& object, const char* name, const char* expected) {
  const auto found = object.find(name);
  if (found == object.end()) throw_member(name, expected, true);
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
