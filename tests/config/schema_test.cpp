#include "config/schema.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "config/composer.h"
#include "config/json_schema.h"
#include "config/registry.h"
#include "tests/config/tree.h"

namespace cytra::config {
namespace {

struct Fruit {
  static constexpr const char* kKind = "fruit";
};
struct Apple : Fruit {
  struct Options {
    int64_t seeds = 5;
    void visit(auto& v) { v("seeds", seeds, "number of seeds", 0, 10); }
  };
  explicit Apple(const Options&) {}
};
CYTRA_REGISTER(Fruit, Apple, "Apple");
struct Basket : Fruit {  // a kind that holds itself
  struct Options {
    Node fruits;
    std::vector<std::string> keys;
    void visit(auto& v) {
      v("fruits", fruits, "in it", list_of<Fruit>());
      v("keys", keys, "labels", required);
    }
  };
  explicit Basket(const Options&) {}
};
CYTRA_REGISTER(Fruit, Basket, "Basket");

struct Box {
  double width = 1.5;
  std::optional<bool> open;
  std::string colour = "red";
  std::vector<std::vector<int64_t>> slots{{1}, {2, 3}};
  void visit(auto& v) {
    v("width", width, "width in m", 0, 1e9);
    v("open", open, "lid");
    v("colour", colour, "paint", {"red", "32"});
    v("slots", slots, "places");
  }
};
struct Shop {
  Node best, other, row, named, changes_to_box;
  Box box;
  void visit(auto& v) {
    v("best", best, "the best", component<Fruit>());
    v("other", other, "another", optional_component<Fruit>());
    v("row", row, "in a row", list_of<Fruit>());
    v("named", named, "by name", map_of<Fruit>());
    v("changes", changes_to_box, "to the box", changes<Box>());
    v("box", box, "a box");
    v("tags", Unused{}, "kept");
  }
};

std::string problems_of(const std::string& text) {
  Node node = parse_yaml(text, "a.yaml");
  set_paths(node);
  return message_of<ConfigError>([&] { parse<Shop>(node); });
}

TEST(Schema, PartsAreChecked) {
  const std::string best = "best: {_target_: Apple}\n";
  EXPECT_EQ(problems_of(best), "");
  EXPECT_EQ(problems_of(best + "other: null\nrow: null\nnamed: {a: null, _b: 3}\nchanges: null"),
            "");
  EXPECT_EQ(problems_of("row: []"), "a.yaml:1:1: 'best' is missing, expected a value.");
  EXPECT_EQ(problems_of("best: null"), "a.yaml:1:1: 'best' is missing, expected a value.");
  EXPECT_EQ(problems_of("best: 3"),
            "a.yaml:1:7: best: expected a fruit (a map with _target_), got 3");
  EXPECT_EQ(problems_of("best: {seeds: 3}"),
            "a.yaml:1:7: best: no '_target_', expected the name of a fruit. Choices: Apple, "
            "Basket.");
  EXPECT_EQ(problems_of(best + "row: {a: 1}"),
            "a.yaml:2:6: row: expected a list of fruits, got a map");
  EXPECT_EQ(problems_of(best + "named: [1]"),
            "a.yaml:2:8: named: expected a map of fruits, got a list");
  EXPECT_EQ(
      problems_of(best +
                  "row: [{_target_: Basket, keys: a, fruits: [{_target_: Apple, seeds: 11}]}, "
                  "{_target_: Aple}]\n"
                  "named: {x: {_target_: Apple, seed: 1}}\nchanges: {width: null, colour: blue}"),
      "a.yaml:2:69: row[0].fruits[0].seeds: expected a value from 0 to 10, got 11\n"
      "a.yaml:2:87: row[1]._target_: no fruit 'Aple', expected a registered one. Did you mean "
      "'Apple'?\n"
      "a.yaml:3:30: named.x.seed: unknown key 'seed', expected one this part has. Did you mean "
      "'seeds'?\n"
      "a.yaml:4:32: changes.colour: expected one of red, 32, got 'blue'.");
}

TEST(Schema, Describes) {
  const auto text = [](const std::string& name) {
    return describe_text(options_type<Shop>(), name);
  };
  EXPECT_EQ(text("box"),
            "box: a box\n"
            "  name    type                       default      range\n"
            "  width   number                     1.5          >= 0      width in m\n"
            "  open    true or false or null      null                   lid\n"
            "  colour  text                       red          red | 32  paint\n"
            "  slots   list of lists of integers  [[1],[2,3]]            places\n");
  EXPECT_EQ(text("Apple"),
            "Apple (fruit)\n"
            "  name   type     default  range\n"
            "  seeds  integer  5        0 .. 10  number of seeds\n");
  EXPECT_EQ(text("monai.Apple"), text("Apple"));
  EXPECT_NE(text("fruit").find("fruit, by _target_: Apple, Basket"), std::string::npos);
  EXPECT_NE(text("").find("map of components: fruit"), std::string::npos);
  for (const char* place : {"best.seeds", "row.3.seeds", "row[3].seeds", "named.mine.seeds"})
    EXPECT_NE(text(place).find("number of seeds"), std::string::npos) << place;
  EXPECT_EQ(message_of<ConfigError>([&] { text("Appel"); }),
            "nothing to describe is called 'Appel', expected a place in the configuration, a "
            "component or a kind of component. Did you mean 'Apple'?");
}

TEST(Schema, Json) {
  const auto schema = [](const std::string& group) {
    return nlohmann::json::parse(json_schema(options_type<Shop>(), group));
  };
  const auto root = schema("");
  const auto& box = root["properties"]["box"];
  EXPECT_EQ(box["additionalProperties"], false);
  EXPECT_EQ(box["properties"]["width"]["minimum"], 0.0);
  EXPECT_EQ(box["properties"]["width"]["default"], 1.5);
  EXPECT_EQ(box["properties"]["width"]["description"], "width in m");
  EXPECT_EQ(box["properties"]["colour"]["anyOf"][0]["enum"], (nlohmann::json{"red", "32", 32}));
  EXPECT_TRUE(root["properties"].contains("defaults"));
  EXPECT_FALSE(root.contains("required"));
  EXPECT_TRUE(root["definitions"].contains("fruit.Apple"));
  EXPECT_EQ(root["properties"]["row"]["items"]["$ref"], "#/definitions/item.fruit");
  EXPECT_EQ(schema("experiment")["properties"], root["properties"]);
  EXPECT_TRUE(schema("best")["properties"].contains("seeds"));
  EXPECT_TRUE(schema("box")["properties"].contains("slots"));
  EXPECT_EQ(message_of<ConfigError>([&] { schema("boxx"); }),
            "no group 'boxx' to describe, expected a folder of configs. Did you mean 'box'?");
}

}  // namespace
}  // namespace cytra::config
