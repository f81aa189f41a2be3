#include "config/registry.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "config/composer.h"
#include "tests/config/tree.h"

namespace cytra {
namespace {

using config::parse_yaml;

struct Shape {
  static constexpr const char* kKind = "shape";
  virtual ~Shape() = default;
  virtual int64_t size() const = 0;
};
struct Square : Shape {
  struct Options {
    int64_t side = 2;
    void visit(auto& v) { v("side", side, "length"); }
  };
  explicit Square(const Options& options) : side_(options.side) {}
  int64_t size() const override { return side_ * side_; }

 private:
  int64_t side_;
};
CYTRA_REGISTER(Shape, Square, "Square");

std::string name_of(const std::string& text) {
  config::Components models{"model", {{"AdamW", {}}, {"DynUNet", {}}, {"my.Own", {}}}};
  return models.name_of(parse_yaml(text, "a.yaml"));
}

TEST(Registry, Makes) {
  EXPECT_EQ(make<Shape>(parse_yaml("{_target_: Square, side: 3}", "a.yaml"))->size(), 9);
  EXPECT_EQ(make<Shape>(parse_yaml("{_target_: cytra.shapes.Square}", "a.yaml"))->size(), 4);
  EXPECT_EQ(Registry<Shape>::instance().names(), std::vector<std::string>{"Square"});
  EXPECT_THROW(Registry<Shape>::instance().add("Square", nullptr, {}, __FILE__), std::logic_error);
}

TEST(Registry, Names) {
  EXPECT_EQ(name_of("_target_: AdamW"), "AdamW");
  EXPECT_EQ(name_of("_target_: torch.optim.AdamW"), "AdamW");
  EXPECT_EQ(name_of("_target_: monai.networks.nets.DynUNet"), "DynUNet");
  EXPECT_EQ(name_of("_target_: my.Own"), "my.Own");
  EXPECT_EQ(message_of<ConfigError>([] { name_of("_target_: monai.nets.DynUnet"); }),
            "a.yaml:1:11: no model 'DynUnet', expected a registered one. Did you mean 'DynUNet'?");
  EXPECT_EQ(message_of<ConfigError>([] { name_of("_target_: other.AdamW"); }).substr(0, 39),
            "a.yaml:1:11: no model 'other.AdamW', ex");
  EXPECT_EQ(message_of<ConfigError>([] { name_of("a: 1"); }),
            "a.yaml:1:1: no '_target_', expected the name of a model. Choices: AdamW, DynUNet, "
            "my.Own.");
  EXPECT_EQ(message_of<ConfigError>([] { name_of("_target_: ???"); }),
            "a.yaml:1:11: expected text, got ??? (it must be set)");
  EXPECT_EQ(message_of<ConfigError>([] { name_of("_target_: pytorch_lightning.DynUNets"); }),
            "a.yaml:1:11: no model 'DynUNets', expected a registered one. Did you mean 'DynUNet'?");
}

}  // namespace
}  // namespace cytra
