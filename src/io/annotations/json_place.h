#pragma once
// The place of a value in a JSON file of annotations, and functions that read it.
#include <string>

#include <nlohmann/json.hpp>

namespace cytra::io {

using Json = nlohmann::json;

/// The place of a value, for messages.
struct JsonPlace {
  const std::string& path;
  const char* list;
  std::size_t index;
  std::string text() const;
  [[noreturn]] void refuse(const std::string& what) const;
  double number(const Json& value, const char* what) const;
  /// The value of a key; null where it is missing or null.
  const Json* find(const Json& object, const char* key) const;
  /// The text of a key; "" where it is missing or null.
  std::string text_of(const Json& object, const char* key) const;
};

}  // namespace cytra::io
