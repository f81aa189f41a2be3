#include "config/run_config.h"

#include <cstdlib>

#include <gtest/gtest.h>

#include "config/composer.h"
#include "config/node.h"

namespace cytra::config {
namespace {

Node tree(const std::string& yaml) {
  Node root = parse_yaml(yaml, "test");
  set_paths(root);
  return root;
}

TEST(RunConfig, WhatComesFromTheEnvironmentIsKeptAsWritten) {
  ::setenv("CYTRA_TEST_SECRET", "hush", 1);
  ::setenv("CYTRA_TEST_COUNT", "3", 1);
  const Node composed = tree(
      "{key: '${oc.env:CYTRA_TEST_SECRET}', url: 'https://${key}@host/${name}', name: run,"
      " list: ['${key}', '${name}'], map: {a: '${.b}', b: "
      "\"${oc.env:CYTRA_TEST_NONE,'it\\\\'s'}\"},"
      " copy: '${map}', count: '${oc.decode:${oc.env:CYTRA_TEST_COUNT}}', other: '${count}'}");
  Node config = job_config(composed);
  config.set("name", Node::make_string("changed by the program"));
  const Node kept = keep_environment(config, composed);
  const std::string text = to_yaml(kept);
  EXPECT_EQ(text.find("hush"), std::string::npos) << text;
  EXPECT_EQ(kept.get<std::string>("key"), "${oc.env:CYTRA_TEST_SECRET}");
  EXPECT_EQ(kept.get<std::string>("url"), "https://${oc.env:CYTRA_TEST_SECRET}@host/run");
  EXPECT_EQ(kept.get<std::string>("name"), "changed by the program");
  EXPECT_EQ(kept.get<int64_t>("other"), 3);

  Node again = parse_yaml(text, "test");
  fill_in_environment(again);
  EXPECT_EQ(to_yaml(again), to_yaml(config));
  ::unsetenv("CYTRA_TEST_SECRET");  // another machine: whoever needs it will say so
  again = parse_yaml(text, "test");
  fill_in_environment(again);
  EXPECT_EQ(again.get<std::string>("key"), "${oc.env:CYTRA_TEST_SECRET}");
  EXPECT_EQ(again.get<std::string>("map.a"), "it's");
}

}  // namespace
}  // namespace cytra::config
