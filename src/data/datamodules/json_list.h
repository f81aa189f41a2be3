#pragma once
// The JSON files that data sets are listed in: dataset.json, splits_final.json.
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace cytra::data {

using Json = nlohmann::json;

/// A JSON file with the places of its values for messages. Throws: ConfigError (no such file),
/// DataError (no JSON, nesting beyond 16, more than 256 MB).
Json read_json(const std::string& path);
/// object[key] as a list, map or text. Throws: DataError `place: ...` with the nearest key.
const Json& member(const Json& object, const std::string& key, const std::string& place);
const Json& list_of(const Json& object, const std::string& key, const std::string& place);
/// Text of a string or whole number. Throws: DataError.
std::string text_of(const Json& value, const std::string& place);

}  // namespace cytra::data
