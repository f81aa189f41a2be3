#include "config/node.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "config/composer.h"
#include "tests/config/tree.h"

namespace cytra::config {
namespace {

Node read_tree(const std::string& text) {
  Node node = parse_yaml(text, "a.yaml");
  set_paths(node);
  return node;
}

template <class T>
std::string as_error(const Node& node) {
  return message_of<ConfigError>([&] { node.as<T>(); });
}

TEST(Node, FindsByDottedKey) {
  const Node node = read_tree("a: {b: [{c: 1}, {c: 2}]}\nx.y: 3\n");
  EXPECT_EQ(node.get<int64_t>("a.b.1.c"), 2);
  EXPECT_EQ(node.find("a.b.2.c"), nullptr);
  EXPECT_EQ(node.find("a.b.x"), nullptr);
  EXPECT_EQ(node.find(""), nullptr);
  EXPECT_EQ(node.find("x.y"), nullptr);
  EXPECT_NE(node.find_direct("x.y"), nullptr);
  EXPECT_EQ(node.at("a.b").list[1].where(), "a.yaml:1:17: a.b[1]");
  EXPECT_EQ(node.get<int64_t>("nope", 7), 7);
}

TEST(Node, NamesTheNearestKey) {
  const Node node = read_tree("model: {filters: 1}\n");
  EXPECT_EQ(message_of<ConfigError>([&] { node.at("model.filter"); }),
            "a.yaml:1:8: model: no key 'filter', expected it here. Did you mean 'filters'?");
}

TEST(Node, ReadsTypes) {
  const Node node =
      read_tree("i: 3\nf: 2.0\nh: 2.5\ns: ten\nl: [1, 2]\nb: true\nn:\nm: {}\nd: 1e300\nq: ???\n");
  EXPECT_EQ(node.get<int64_t>("f"), 2);
  EXPECT_EQ(node.get<double>("i"), 3.0);
  EXPECT_TRUE(node.get<bool>("b"));
  EXPECT_EQ(node.get<std::vector<double>>("l"), (std::vector<double>{1, 2}));
  EXPECT_EQ(node.get<std::string>("n", "x"), "x");
  EXPECT_EQ(as_error<int64_t>(node.at("h")), "a.yaml:3:4: h: expected an integer, got 2.5");
  EXPECT_EQ(as_error<int64_t>(node.at("s")), "a.yaml:4:4: s: expected an integer, got 'ten'");
  EXPECT_EQ(as_error<int64_t>(node.at("d")), "a.yaml:9:4: d: expected an integer, got 1e+300");
  EXPECT_EQ(as_error<bool>(node.at("i")), "a.yaml:1:4: i: expected true or false, got 3");
  EXPECT_EQ(as_error<std::string>(node.at("n")), "a.yaml:7:1: n: expected text, got null");
  EXPECT_EQ(as_error<std::string>(node.at("q")),
            "a.yaml:10:4: q: expected text, got ??? (it must be set)");
  EXPECT_EQ(as_error<std::vector<double>>(node.at("m")),
            "a.yaml:8:4: m: expected a list, got a map");
  EXPECT_EQ(as_error<std::vector<bool>>(node.at("l")),
            "a.yaml:5:5: l[0]: expected true or false, got 1");
}

TEST(Node, SetsAndCompares) {
  Node node = Node::make_map();
  node.set("a", Node::make_integer(1));
  node.set("b", Node::make_string("x"));
  node.set("a", Node::make_integer(2));
  EXPECT_EQ(node.keys(), (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(equal(node, read_tree("b: x\na: 2\n")));
  EXPECT_FALSE(equal(node, read_tree("b: x\na: 2.0\n")));
  EXPECT_FALSE(equal(read_tree("a: [1]\n"), read_tree("a: [1, 2]\n")));
  EXPECT_EQ(Node().where(), "default");
}

TEST(Node, IsMadeOfValues) {
  Node node = Node::make_map();
  node.set("b", Node::make_boolean(true));
  node.set("r", Node::make_real(2));
  node.set("l", Node::make_list(std::vector<double>{1, 2.5}));
  node.set("t", Node::make_list(std::vector<std::string>{"1"}));
  node.set("n", Node::make_list({Node::make_integer(1), Node()}));
  EXPECT_TRUE(equal(node, read_tree("b: true\nr: 2.0\nl: [1.0, 2.5]\nt: ['1']\nn: [1, null]\n")));
}

TEST(Node, KnowsWhatTheUserHasSet) {
  Node node;
  EXPECT_FALSE(node.is_set_by_user());
  const auto is_set_in = [&](const std::string& file, int line) {
    node.origin = {std::make_shared<const std::string>(file), line, 1};
    return node.is_set_by_user();
  };
  EXPECT_TRUE(is_set_in("a=1", 0));
  EXPECT_TRUE(is_set_in("/home/me/task/configs/mine.yaml", 3));
  EXPECT_FALSE(is_set_in(config_folder() + "/task/segmentation.yaml", 3));
  EXPECT_TRUE(is_set_in(config_folder() + "/../mine.yaml", 3));
}

}  // namespace
}  // namespace cytra::config
