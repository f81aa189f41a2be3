#include "nn/checkpoint_format.h"

#include <algorithm>

#include "base/error.h"
#include "base/strings.h"
#include "base/version.h"

namespace cytra::nn {

int64_t format_of(const std::map<std::string, std::string>& metadata, const std::string& path) {
  const auto entry = metadata.find(kFormatKey);
  if (entry == metadata.end()) return 1;
  const std::string& text = entry->second;
  const bool is_number =
      !text.empty() && text.size() < 10 && std::ranges::all_of(text, is_digit) && text[0] != '0';
  if (!is_number) {
    throw DataError("{}: its {} is '{}', expected a number from 1 to {}",
                    path,
                    kFormatKey,
                    printable(text),
                    kCheckpointFormat);
  }
  const int64_t format = std::stoll(text);
  if (format <= kCheckpointFormat) return format;
  const auto writer = metadata.find("cytra_version");
  throw DataError(
      "{}: a checkpoint of format {}{}, expected at most {}, which this Cytra {} reads: use the "
      "Cytra that wrote it, or a later one",
      path,
      format,
      writer == metadata.end() ? "" : " by Cytra " + printable(writer->second),
      kCheckpointFormat,
      version());
}

const std::vector<MovedSince>& moved_keys_of_checkpoints() {
  static const std::vector<MovedSince> moved{};  // none since format 1
  return moved;
}

void carry_over(config::Node& config, int64_t format, const std::vector<MovedSince>& moved) {
  for (const MovedSince& key : moved) {
    const config::Node* before = config.find(key.before);
    if (key.format <= format || before == nullptr) continue;
    const config::Node value = *before;
    const auto split_at = [](const std::string& path) {
      const std::size_t dot = path.rfind('.');
      return dot == std::string::npos ? std::pair<std::string, std::string>("", path)
                                      : std::pair(path.substr(0, dot), path.substr(dot + 1));
    };
    const auto [old_section, old_name] = split_at(key.before);
    config::Node& from = old_section.empty() ? config : *config.find(old_section);
    std::erase_if(from.map, [name = old_name](const auto& entry) { return entry.first == name; });
    config::Node* to = &config;
    const auto [section, name] = split_at(key.now);
    for (const std::string& part :
         section.empty() ? std::vector<std::string>{} : split(section, '.')) {
      config::Node* child = to->find_direct(part);
      to = child != nullptr ? child : &to->set(part, config::Node::make_map());
    }
    if (to->find_direct(name) == nullptr) to->set(name, value);
  }
}

}  // namespace cytra::nn
