#include "data/datamodules/json_list.h"

#include "base/error.h"
#include "base/files.h"
#include "config/json_limits.h"

namespace cytra::data {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 28;
constexpr std::size_t kDeepest = 16;

}  // namespace

Json read_json(const std::string& path) {
  const std::string text = read_file(path, kMostBytes);
  if (!config::json_beyond(text, kDeepest, SIZE_MAX).empty())
    throw DataError(path + ": lists in lists, expected at most 16 levels");
  try {
    return Json::parse(text);
  } catch (const Json::exception& error) {
    std::string what =
        error.what();  // "[json.exception.parse_error.101] parse error at line 1 ..."
    what.erase(0, what.find("] ") + 2);
    throw DataError(path + ": no JSON: " + what);
  }
}

const Json& member(const Json& object, const std::string& key, const std::string& place) {
  if (!object.is_object()) throw DataError(place + ": " + object.type_name() + ", expected a map");
  const auto found = object.find(key);
  if (found != object.end()) return *found;
  std::vector<std::string> keys;
  for (const auto& [name, value] : object.items()) keys.push_back(name);
  throw DataError(place + ": no '" + key + "'." + suggestion(key, keys));
}

const Json& list_of(const Json& object, const std::string& key, const std::string& place) {
  const Json& value = member(object, key, place);
  if (value.is_array()) return value;
  throw DataError(place + ": " + key + " is a " + value.type_name() + ", expected a list");
}

std::string text_of(const Json& value, const std::string& place) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number() || value.is_boolean()) return value.dump();
  throw DataError(place + ": " + value.type_name() + ", expected text");
}

}  // namespace cytra::data
