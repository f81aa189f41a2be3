#pragma once
// Reads JSON files that list data sets: dataset.json, splits_final.json.
#include <string>

#include <nlohmann/json.hpp>

namespace cytra::data {

using Json = nlohmann::json;

/// Reads a JSON file. Throws: ConfigError (no such file), DataError (no JSON, nesting beyond 16,
/// more than 256 MB).
Json read_json(const std::string& path);
/// The value object[key]: a list, map or text. Throws: DataError `place: ...` with the nearest
/// key.
const Json& member(const Json& object, const std::string& key, const std::string& place);
const Json& list_of(const Json& object, const std::string& key, const std::string& place);
/// The text of a string or whole number. Throws: DataError.
std::string text_of(const Json& value, const std::string& place);

}  // namespace cytra::data
