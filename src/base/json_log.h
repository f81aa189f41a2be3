#pragma once
// Messages and progress as lines of JSON, for programs that read stderr: `message`, `progress`
// and `epoch` of docs/schema.json.
#include <string>
#include <string_view>

namespace cytra::log {

/// From now on messages (base/log.h) and progress (base/progress.h) are lines of JSON.
void set_json();
bool is_json();
/// Quotes a text of UTF-8 as JSON does.
std::string json_quote(std::string_view text);
/// Writes a JSON object as a line of stderr. Thread: safe.
void write_json(const std::string& object);

}  // namespace cytra::log
