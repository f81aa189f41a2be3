// Reads dataset.json as nnU-Net (both versions) and the Decathlon write it. Source: nnU-Net's
// documentation/dataset_format.md, region_based_training.md, ignore_label.md.
#include "data/datamodules/description.h"

#include <fmt/format.h>

#include "base/error.h"
#include "data/datamodules/json_list.h"

namespace cytra::data {
namespace {

bool is_number(const std::string& text) {
  return !text.empty() && text.size() < 10 &&
         text.find_first_not_of("0123456789") == std::string::npos;
}

/// Adds an entry of `labels`: {"tumor": 2}, {"whole": [1, 2]} or, in the first version, {"2":
/// "tumor"}.
void add_label(const std::string& name, const Json& value, DatasetDescription& into) {
  const std::string where = fmt::format("{}: labels.{}", into.place, name);
  if (value.is_array()) {
    into.regions.push_back(name);
    return;
  }
  const std::string text = text_of(value, where);
  const bool is_named = is_number(text);
  if (!is_named && !is_number(name))
    throw DataError("{}: '{}', expected a label's number", where, text);
  const int64_t number = std::stoll(is_named ? text : name);
  const std::string& meaning = is_named ? name : text;
  if (meaning == "ignore") {
    into.ignored = number;
  } else {
    into.labels[number] = meaning;
  }
}

}  // namespace

DatasetDescription read_description(const std::string& file) {
  DatasetDescription description;
  const Json json = read_json(description.place = file);
  for (const char* key : {"channel_names", "modality"}) {
    const auto found = json.find(key);
    if (found == json.end() || !found->is_object()) continue;
    description.channels.resize(found->size());
    for (const auto& [number, name] : found->items()) {
      const std::string where = fmt::format("{}: {}.{}", file, key, number);
      if (!is_number(number) || std::stoull(number) >= found->size())
        throw DataError("{}: expected the numbers 0 to {}", where, found->size() - 1);
      description.channels[std::stoull(number)] = text_of(name, where);
    }
    break;
  }
  const auto labels = json.find("labels");
  if (labels == json.end() || !labels->is_object()) return description;
  for (const auto& [name, value] : labels->items()) add_label(name, value, description);
  return description;
}

DatasetDescription description_of(const DataModule& module) {
  const auto* described = dynamic_cast<const Described*>(&module);
  return described == nullptr ? DatasetDescription{} : described->description();
}

}  // namespace cytra::data
