#include "app/serve/json_body.h"

#include <fmt/format.h>

namespace cytra::app {

constexpr std::size_t kMostJson = 16 << 20;  // bytes
constexpr int kMostDepth = 32;

Json parse_body(const std::string& text) {
  if (text.size() > kMostJson) {
    throw HttpError(
        413,
        fmt::format("JSON of {} bytes, expected at most {}; send the tensor as binary data",
                    text.size(),
                    kMostJson));
  }
  try {
    return Json::parse(text, [](int depth, Json::parse_event_t, Json&) {
      if (depth > kMostDepth) throw HttpError(400, "JSON: nested too deep");
      return true;
    });
  } catch (const Json::exception& error) {
    throw HttpError(400, fmt::format("JSON: {}", error.what()));
  }
}

const Json& parameters_of(const Json& object) {
  static const Json none = Json::object();
  const auto found = object.find("parameters");
  if (found == object.end()) return none;
  if (!found->is_object()) throw HttpError(400, "parameters: expected an object");
  return *found;
}

void throw_member(const char* name, const char* expected, bool is_missing) {
  throw HttpError(400,
                  fmt::format("{}: {}expected {}", name, is_missing ? "missing, " : "", expected));
}

}  // namespace cytra::app
