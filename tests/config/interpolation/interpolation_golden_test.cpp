// Replays what OmegaConf, Hydra and Python made of ${...} (tests/golden/make_interpolation.py).
#include <cstdlib>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "config/composer.h"
#include "config/interpolation/expression.h"
#include "config/interpolation/interpolate.h"
#include "tests/config/tree.h"
#include "tests/support/at_least.h"

namespace cytra::config {
namespace {

using Json = nlohmann::ordered_json;

class InterpolationGolden : public ::testing::Test {
 protected:
  void SetUp() override {
    std::ifstream stream(CYTRA_SOURCE_DIR "/tests/golden/interpolation.json");
    ASSERT_TRUE(stream.good());
    golden_ = Json::parse(stream);
    for (const auto& [name, value] : golden_["environment"].items())
      ::setenv(name.c_str(), value.get<std::string>().c_str(), 1);
    ::unsetenv(golden_["unset"].get<std::string>().c_str());
  }

  /// `make` turns the row's text into a tree.
  template <class Make>
  void replay(const char* section, std::size_t least, Make make) {
    for (const Json& row : test::at_least(least, golden_[section])) {
      SCOPED_TRACE(row.dump());
      std::string found = "error", message;
      try {
        found = Json::parse(to_json(make(row["text"]))).dump();
      } catch (const ConfigError& error) {
        message = error.what();
        EXPECT_EQ(message.find('\n'), std::string::npos);
      }
      EXPECT_EQ(found, row.contains("error") ? "error" : row["expected"].dump()) << message;
    }
  }

  Json golden_;
};

TEST_F(InterpolationGolden, DocumentsMatchOmegaConf) {
  replay("documents", 274, [](const Json& text) {
    Node node = parse_yaml(text.get<std::string>(), "a.yaml");
    resolve(node);
    return node;
  });
}

TEST_F(InterpolationGolden, ValuesOfOneKeyAreTheSame) {
  replay("documents", 274, [](const Json& text) {
    const Node node = parse_yaml(text.get<std::string>(), "a.yaml");
    Node result = Node::make_map();
    for (const std::string& key : node.keys()) {
      const bool missing = node.find_direct(key)->string == "???";
      result.set(key, missing ? Node::make_string("???") : evaluate(node, key));
    }
    return result;
  });
}

TEST_F(InterpolationGolden, MergesMatchHydra) {
  replay("merges", 17, [](const Json& files) {
    Tree tree;
    std::string defaults = "defaults:\n";
    for (std::size_t i = 0; i < files.size(); ++i) {
      const std::string name = "f" + std::to_string(i);
      tree.write(name + ".yaml", files[i].get<std::string>());
      defaults += "  - " + name + "\n";
    }
    tree.write("config.yaml", defaults);
    return Composer({tree.folder()}).compose("config", {});
  });
}

TEST_F(InterpolationGolden, ExpressionsMatchPython) {
  replay("expressions", 353, [](const Json& text) {
    return to_node(evaluate_expression(text.get<std::string>()));
  });
}

}  // namespace
}  // namespace cytra::config
