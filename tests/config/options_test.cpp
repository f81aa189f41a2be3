#include "config/options.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "config/composer.h"
#include "tests/config/tree.h"

namespace cytra::config {
namespace {

struct Inner {
  double rate = 0.5;
  template <class V>
  void visit(V& v) {
    v("rate", rate, "rate", 0, 1);
  }
};

struct Options {
  int64_t width = 8;
  std::string mode = "same";
  std::optional<double> scale;
  std::optional<int64_t> bounded;
  std::vector<Inner> parts;
  std::vector<int64_t> sizes = {1};
  Inner inner;
  Node free;
  template <class V>
  void visit(V& v) {
    v("width", width, "features", 1, 64);
    v("mode", mode, "border", {"same", "valid"});
    v("scale", scale, "factor");
    v("bounded", bounded, "number", 1, 3);
    v("parts", parts, "parts");
    v("sizes", sizes, "sizes", 1, 9);
    v("inner", inner, "inner");
    v("free", free, "anything");
  }
};

Options read(const std::string& text) {
  Node node = parse_yaml(text, "a.yaml");
  set_paths(node, "model");
  return parse<Options>(node);
}
std::string error_of(const std::string& text) {
  return message_of<ConfigError>([&] { read(text); });
}

TEST(Options, Reads) {
  EXPECT_EQ(read("").width, 8);
  const Options options = read(
      "_target_: X\n_convert_: all\nwidth: 4\nmode: valid\nscale: 2\nparts: [{rate: 1}, {}]\n"
      "sizes: [3, 4]\ninner: {rate: 0}\nfree: {a: 1}\n");
  EXPECT_EQ(options.width, 4);
  EXPECT_EQ(options.mode, "valid");
  EXPECT_EQ(options.scale, 2.0);
  EXPECT_EQ(options.parts.size(), 2U);
  EXPECT_EQ(options.sizes, (std::vector<int64_t>{3, 4}));
  EXPECT_EQ(options.inner.rate, 0);
  EXPECT_EQ(options.free.get<int64_t>("a"), 1);
  EXPECT_EQ(read("sizes: 7").sizes, (std::vector<int64_t>{7}));
  EXPECT_FALSE(read("scale: null").scale.has_value());
}

TEST(Options, Errors) {
  EXPECT_EQ(error_of("widht: 1"),
            "a.yaml:1:8: model.widht: unknown key 'widht', expected one this part has. Did you "
            "mean 'width'?");
  EXPECT_EQ(error_of("colour: 1"),
            "a.yaml:1:9: model.colour: unknown key 'colour', expected one this part has. Choices: "
            "width, mode, scale, bounded, parts, sizes, inner, free.");
  EXPECT_EQ(error_of("widths: 1"),
            "a.yaml:1:9: model.widths: unknown key 'widths', expected one this part has. Did you "
            "mean 'width'?");
  EXPECT_EQ(error_of("width: 65"),
            "a.yaml:1:8: model.width: expected a value from 1 to 64, got 65");
  EXPECT_EQ(error_of("width: ten"), "a.yaml:1:8: model.width: expected an integer, got 'ten'");
  EXPECT_EQ(
      error_of("mode: vald"),
      "a.yaml:1:7: model.mode: expected one of same, valid, got 'vald'. Did you mean 'valid'?");
  EXPECT_EQ(error_of("inner: {rate: 1.5}"),
            "a.yaml:1:15: model.inner.rate: expected a value from 0 to 1, got 1.5");
  EXPECT_EQ(error_of("inner: {rate: .nan}"),
            "a.yaml:1:15: model.inner.rate: expected a value from 0 to 1, got nan");
  EXPECT_EQ(error_of("inner: 3"), "a.yaml:1:8: model.inner: expected a map of options, got 3");
  EXPECT_EQ(error_of("parts: [3]"), "a.yaml:1:9: model.parts[0]: expected a map of options, got 3");
  EXPECT_EQ(error_of("bounded: 4"),
            "a.yaml:1:10: model.bounded: expected a value from 1 to 3, got 4");
  EXPECT_EQ(error_of("sizes: [10]"),
            "a.yaml:1:8: model.sizes: expected a value from 1 to 9, got 10");
  EXPECT_EQ(message_of<ConfigError>([] { throw_missing(parse_yaml("a: 1", "a.yaml"), "width"); }),
            "a.yaml:1:1: 'width' is missing, expected a value.");
}

}  // namespace
}  // namespace cytra::config
