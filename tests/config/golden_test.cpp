// Replays what Hydra 1.3.8 made of small config trees (tests/golden/make_config.py).
#include <algorithm>
#include <cstdlib>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "config/composer.h"
#include "tests/config/tree.h"
#include "tests/support/at_least.h"

namespace cytra::config {
namespace {

using Json = nlohmann::ordered_json;

TEST(Golden, MatchesHydra) {
  std::ifstream stream(CYTRA_SOURCE_DIR "/tests/golden/config.json");
  ASSERT_TRUE(stream.good());
  const Json golden = Json::parse(stream);
  for (const Json& row : test::at_least(765, golden["cases"])) {
    SCOPED_TRACE(row.dump());
    Tree tree;
    std::string primary = "config";
    for (const auto& [name, text] : golden["trees"][row["tree"].get<std::size_t>()].items()) {
      if (name == "primary") {
        primary = text.get<std::string>();
      } else {
        tree.write(name, text.get<std::string>());
      }
    }
    ::setenv("CYTRA_TREE", tree.folder().c_str(), 1);
    std::string found = "error";
    std::string message;
    try {
      const Node config = Composer({tree.folder()})
                              .compose(primary, row["overrides"].get<std::vector<std::string>>());
      found =
          Json::parse(to_json(config)).dump();  // order of keys and 1 or 1.0 are part of the text
    } catch (const ConfigError& error) {
      message = error.what();
      EXPECT_LE(std::ranges::count(message, '\n'), 1);  // two unknown keys have a line each
    }
    EXPECT_EQ(found, row.contains("error") ? "error" : row["expected"].dump()) << message;
  }
}

}  // namespace
}  // namespace cytra::config
