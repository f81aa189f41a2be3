#include "data/source_keys.h"

#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/strings.h"

namespace cytra::data {
namespace {

bool is_same_part(const io::Selection& one, const io::Selection& other) {
  return one.scene == other.scene && one.level == other.level && one.timepoint == other.timepoint &&
         one.channels.empty() && other.channels.empty();
}

bool has_text(const std::vector<std::string>& texts, const std::string& text) {
  return contains(texts, text);
}

}  // namespace

std::vector<std::string> SourceKeyOptions::read(const std::vector<std::string>& columns) {
  if (source_keys.empty()) return columns;
  if (columns.empty())
    throw ConfigError("source_keys: expected data.columns, the first of which they replace");
  if (std::set<std::string>(source_keys.begin(), source_keys.end()).size() < source_keys.size())
    throw ConfigError("source_keys: [{}], expected each once", fmt::join(source_keys, ", "));
  joined = columns.front();
  std::vector<std::string> all = source_keys;
  for (std::size_t i = 1; i < columns.size(); ++i)
    if (!has_text(all, columns[i])) all.push_back(columns[i]);
  return all;
}

void join_sources(const std::vector<std::string>& keys,
                  const std::string& image,
                  const std::vector<std::string>& others,
                  std::vector<Sample>& samples) {
  if (keys.empty()) return;
  for (Sample& sample : samples) {
    Source all;
    for (const std::string& key : keys) {
      const auto found = sample.sources.find(key);
      if (found == sample.sources.end()) {
        throw DataError("{}: no image in the column '{}' of data.source_keys", sample.id, key);
      }
      const Source& own = found->second;
      if (all.path.empty()) {
        all = own;
        continue;
      }
      if (!is_same_part(all.selection, own.selection)) {
        throw ConfigError(
            "data.source_keys: {} of {}: a scene, time point, level or channel of its own, "
            "expected the same of all keys, and no channel",
            key,
            sample.id);
      }
      all.more.push_back(own.path);
      all.more.insert(all.more.end(), own.more.begin(), own.more.end());
    }
    for (const std::string& key : keys)
      if (!has_text(others, key)) sample.sources.erase(key);
    sample.sources[image] = std::move(all);
  }
}

}  // namespace cytra::data
