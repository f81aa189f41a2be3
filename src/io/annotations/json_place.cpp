// Part of io/annotations/json_parts.h: functions that read a value at its place.
#include <fmt/format.h>

#include "base/error.h"
#include "io/annotations/json_parts.h"
#include "io/annotations/shapes.h"

namespace cytra::io {

std::string JsonPlace::text() const {
  return fmt::format("{}: {}[{}]", path, list, index);
}

void JsonPlace::refuse(const std::string& what) const {
  throw DataError(text() + ": " + what);
}

double JsonPlace::number(const Json& value, const char* what) const {
  if (value.is_number()) return coordinate(text() + ": " + what, value.get<double>());
  refuse(fmt::format("{} is {}, expected a number", what, value.type_name()));
}

const Json* JsonPlace::find(const Json& object, const char* key) const {
  if (!object.is_object()) refuse(fmt::format("{}, expected a map", object.type_name()));
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

std::string JsonPlace::text_of(const Json& object, const char* key) const {
  const Json* value = find(object, key);
  if (value == nullptr) return "";
  if (value->is_string()) return value->get<std::string>();
  if (value->is_number_integer()) return value->dump();
  refuse(fmt::format("{} is {}, expected text", key, value->type_name()));
}

}  // namespace cytra::io
