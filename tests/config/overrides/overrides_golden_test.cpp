// Replays what Hydra 1.3.8 made of words of the command line and of sweeps
// (tests/golden/make_overrides.py).
#include <algorithm>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "config/composer.h"
#include "config/overrides/overrides.h"
#include "config/overrides/sweep.h"
#include "tests/config/tree.h"
#include "tests/support/at_least.h"

namespace cytra::config {
namespace {

using Json = nlohmann::ordered_json;

Json golden() {
  std::ifstream stream(CYTRA_SOURCE_DIR "/tests/golden/overrides.json");
  return Json::parse(stream);
}

std::vector<std::string> sorted(const Json& values) {
  std::vector<std::string> texts;
  for (const Json& value : values) texts.push_back(value.dump());
  std::sort(texts.begin(), texts.end());
  return texts;
}

Json described(const Override& override) {
  constexpr const char* actions[] = {"change", "add", "force", "remove"};
  constexpr const char* kinds[] = {"element", "simple", "choice", "range", "interval", "glob"};
  Json row = {{"action", actions[static_cast<int>(override.action)]},
              {"key", override.key},
              {"package", override.package ? Json(*override.package) : Json()}};
  if (override.sweep == Override::Sweep::glob) {
    row["kind"] = "glob";
    row["include"] = override.include;
    row["exclude"] = override.exclude;
  } else if (override.origin.file->find('=') != std::string::npos) {
    row["kind"] = kinds[static_cast<int>(override.sweep)];
    row["values"] = Json::array();
    for (const Node& value : override.values) row["values"].push_back(Json::parse(to_json(value)));
  }
  return row;
}

TEST(OverridesGolden, WordsMatchHydra) {
  const Json all = golden();
  for (const Json& row : test::at_least(876, all["words"])) {
    SCOPED_TRACE(row.dump());
    const auto text = row["text"].get<std::string>();
    Json expected = row, found = {{"error", true}};
    expected.erase("text");
    std::string message;
    try {
      found = described(parse_override(text));
    } catch (const ConfigError& error) {
      message = error.what();
      EXPECT_EQ(message.find("command line '" + text + "'"), 0U) << message;
    }
    if (expected.erase("any_order") > 0 && found.contains("values")) {
      const auto content = [](const Json& part) {  // of shuffle([..]), one value that is a list
        return sorted(part["kind"] == "element" ? part["values"][0] : part["values"]);
      };
      EXPECT_EQ(content(found), content(expected));
      found["values"] = expected["values"];
    }
    EXPECT_EQ(found.dump(), expected.dump()) << message;
  }
}

TEST(OverridesGolden, SweepsMatchHydra) {
  const Json all = golden();
  Tree tree;
  for (const auto& [name, text] : all["tree"].items()) tree.write(name, text.get<std::string>());
  const Composer composer({tree.folder()});
  const auto options_of_group = [&](const std::string& name) {
    for (const Group& group : composer.groups()) {
      if (group.name == name) return group.options;
    }
    return std::vector<std::string>();
  };
  for (const Json& row : test::at_least(50, all["sweeps"])) {
    SCOPED_TRACE(row.dump());
    Json found = Json::array();
    std::string message;
    try {
      std::vector<Override> overrides;
      for (const Json& text : row["overrides"]) overrides.push_back(parse_override(text));
      std::vector<std::pair<std::string, std::string>> params;
      for (const auto& [key, value] : row["params"].items()) params.emplace_back(key, value);
      for (const auto& job : sweep_jobs(overrides, params, options_of_group))
        found.push_back(Json::parse(to_json(composer.compose("config", job))));
    } catch (const ConfigError& error) {
      message = error.what();
      found = nullptr;
    }
    EXPECT_EQ(found.dump(), (row.contains("error") ? Json() : row["jobs"]).dump()) << message;
  }
}

}  // namespace
}  // namespace cytra::config
