#include "app/benchmark/baseline.h"

#include <fmt/format.h>

#include "app/benchmark/report.h"
#include "base/error.h"
#include "base/files.h"
#include "config/json.h"

namespace cytra::app {
namespace {

using config::Node;

/// The first value in which both trees differ: "model.filters=[4,8], there [4,16]"; "" where they
/// are equal.
std::string difference_of(const std::string& name, const Node& now, const Node& then) {
  if (config::equal(now, then)) return "";
  if (now.is_map() && then.is_map()) {
    std::vector<std::string> keys = now.keys();
    for (const std::string& key : then.keys()) {
      if (now.find_direct(key) == nullptr) keys.push_back(key);
    }
    for (const std::string& key : keys) {
      const Node none;
      const Node* const a = now.find_direct(key);
      const Node* const b = then.find_direct(key);
      const std::string found =
          difference_of(name + "." + key, a == nullptr ? none : *a, b == nullptr ? none : *b);
      if (!found.empty()) return found;
    }
    return "";  // an absent key counts as null
  }
  return fmt::format("{}={} here, {} there", name, config::to_json(now), config::to_json(then));
}

void check_same(const std::string& path, const Node& now, const Node& then) {
  for (const char* key : {"device", "input_shape", "model", "training_of"}) {
    const Node* const a = now.find_direct(key);
    const Node* const b = then.find_direct(key);
    if (a == nullptr || b == nullptr) continue;
    if (const std::string found = difference_of(key, *a, *b); !found.empty()) {
      throw ConfigError(
          "--baseline {}: it can't be compared: {}; measure a baseline like this run", path, found);
    }
  }
}

}  // namespace

Node read_baseline(const std::string& path, const Node& report) {
  Node then = config::parse_json(read_file(path), path);
  for (const char* key : {"device", "input_shape", "model"}) {
    if (then.find_direct(key) == nullptr)
      throw DataError("{}: not a report of benchmark_performance (it has no '{}')", path, key);
  }
  check_same(path, config::parse_json(config::to_plain_json(report), path), then);
  return then;
}

std::vector<std::string> compare(const Node& baseline,
                                 std::optional<double> threshold_percent,
                                 Node& report) {
  std::vector<std::string> slower;
  each_row(report, [&](const auto& section, const auto& batch, const auto& option, Node& row) {
    const Node* rows = baseline.find_direct(section);
    if (rows != nullptr) rows = rows->find_direct(batch);
    const Node* before = rows == nullptr ? nullptr : rows->find_direct(option);
    if (before == nullptr || before->find_direct("median_ms") == nullptr) return;
    const std::string name = fmt::format("{}, batch {}, {}", section, batch, option);
    if (const Node* error = row.find_direct("error"); error != nullptr) {
      if (threshold_percent) slower.push_back(name + ": " + error->string);
      return;
    }
    const double change = row.get<double>("median_ms") / before->get<double>("median_ms") - 1;
    const auto now = range_of(row), was = range_of(*before);
    const char* const verdict = now.first > was.second   ? "slower"
                                : now.second < was.first ? "faster"
                                                         : "same";
    row.set("change", Node::make_real(change));
    row.set("verdict", Node::make_string(verdict));
    if (threshold_percent && now.first > was.second && 100 * change > *threshold_percent) {
      slower.push_back(fmt::format("{}: {:.2f} ms, {:.2f} before ({:+.1f} %)",
                                   name,
                                   row.get<double>("median_ms"),
                                   before->get<double>("median_ms"),
                                   100 * change));
    }
  });
  return slower;
}

}  // namespace cytra::app
