#include "app/serve/http/json_body.h"

#include <algorithm>
#include <cmath>

#include "config/json_limits.h"

namespace cytra::app {

constexpr std::size_t kMostDepth = 32, kMostNames = 1000;

Json parse_body(const std::string& text, std::size_t most) {
  if (text.size() > most) {
    throw HttpError(413,
                    "JSON of {} bytes, expected at most {}; a tensor may come as binary data",
                    text.size(),
                    most);
  }
  if (const auto why = config::json_beyond(text, kMostDepth, kMostNames); !why.empty())
    throw HttpError(400, "the JSON {}", why);
  try {
    return Json::parse(text);
  } catch (const Json::exception& error) {
    throw HttpError(400, "JSON: {}", error.what());
  }
}

Json parse_object(const std::string& text, std::size_t most) {
  Json object = text.empty() ? Json::object() : parse_body(text, most);
  if (!object.is_object()) throw HttpError(400, "JSON: expected an object");
  return object;
}

bool is_whole(const Json& value) {
  if (value.is_array()) return std::ranges::all_of(value, is_whole);
  if (value.is_number_unsigned()) return value.get<uint64_t>() <= INT64_MAX;
  if (value.is_number_integer()) return true;
  const double number = value.is_number() ? value.get<double>() : 0.5;
  return number == std::floor(number) && std::abs(number) <= 9007199254740992.0;
}

const Json& parameters_of(const Json& object) {
  static const Json none = Json::object();
  const auto found = object.find("parameters");
  if (found == object.end()) return none;
  if (!found->is_object()) throw HttpError(400, "parameters: expected an object");
  return *found;
}

void throw_member(const char* name, const char* expected, bool is_missing) {
  throw HttpError(400, "{}: {}expected {}", name, is_missing ? "missing, " : "", expected);
}

}  // namespace cytra::app
