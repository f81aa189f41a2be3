#pragma once
// Where a value of a JSON file of annotations lies, and what is read there.
#include <string>

#include <nlohmann/json.hpp>

namespace cytra::io {

using Json = nlohmann::json;

/// Where a value lies, for messages.
struct JsonPlace {
  const std::string& path;
  const char* list;
  std::size_t index;
  std::string text() const;
  [[noreturn]] void refuse(const std::string& what) const;
  double number(const Json& value, const char* what) const;
  /// Null for what is missing or null.
  const Json* find(const Json& object, const char* key) const;
  /// "" for what is missing or null.
  std::string text_of(const Json& object, const char* key) const;
};

}  // namespace cytra::io
