#include "config/checked.h"

#include <cmath>

#include <gtest/gtest.h>

#include "tests/support/message_of.h"

namespace cytra::config {
namespace {

struct CheckedInner {
  double rate = 0.5;
  void visit(auto& v) { v("rate", rate, "rate", 0, 1); }
  void check() const {
    if (rate == 0.25) throw ConfigError("a quarter is no rate");
  }
};

struct CheckedOptions {
  int64_t width = 8, batch = 1;
  std::string mode = "same";
  std::optional<int64_t> bounded;
  std::vector<int64_t> sizes{1}, keys{1};
  CheckedInner inner;
  std::vector<CheckedInner> parts;
  bool is_filled = false;
  void visit(auto& v) {
    v("width", width, "features", 1, 64);
    v("batch", batch, "images", Keyword{1, 64, "AUTO", 0});
    v("mode", mode, "border", {"same", "valid"});
    v("bounded", bounded, "number", 1, 3);
    v("sizes", sizes, "sizes", 1, 9);
    v("keys", keys, "what to load", required);
    v("inner", inner, "inner");
    v("parts", parts, "parts");
    v("tags", Unused{}, "of CytoDL");
  }
  void check() { is_filled = true; }
};

template <class Change>
std::string change_error(const Change& change) {
  CheckedOptions options;
  change(options);
  return message_of<ConfigError>([&] { checked(options, "trainer"); });
}

TEST(CheckedOptions, AreGivenBackWithWhatCheckFillsIn) {
  CheckedOptions options;
  options.batch = 0;  // AUTO
  options.bounded = 3;
  const CheckedOptions same = checked(options, "trainer");
  EXPECT_TRUE(same.is_filled);
  EXPECT_EQ(same.bounded, 3);
}

TEST(CheckedOptions, WhatVisitSaysHoldsForStructs) {
  EXPECT_EQ(change_error([](CheckedOptions& o) { o.width = 0; }),
            "trainer.width: expected a value from 1 to 64, got 0");
  EXPECT_EQ(change_error([](CheckedOptions& o) { o.batch = -1; }),
            "trainer.batch: expected a value from 1 to 64, got -1");
  EXPECT_EQ(change_error([](CheckedOptions& o) { o.mode = "valdi"; }),
            "trainer.mode: expected one of same, valid, got 'valdi'. Did you mean 'valid'?");
  EXPECT_EQ(change_error([](CheckedOptions& o) { o.bounded = 4; }),
            "trainer.bounded: expected a value from 1 to 3, got 4");
  EXPECT_EQ(change_error([](CheckedOptions& o) {
              o.sizes = {2, 10};
            }),
            "trainer.sizes: expected a value from 1 to 9, got 10");
  EXPECT_EQ(change_error([](CheckedOptions& o) { o.keys.clear(); }),
            "trainer.keys: is missing, expected a value");
  EXPECT_EQ(change_error([](CheckedOptions& o) {
              o.inner.rate = std::nan("");
            }).find("trainer.inner.rate: "),
            0U);
  EXPECT_EQ(change_error([](CheckedOptions& o) {
              o.parts = {{}, {2}};
            }).find("trainer.parts.rate: "),
            0U);
  EXPECT_EQ(change_error([](CheckedOptions& o) { o.inner.rate = 0.25; }), "a quarter is no rate");
  EXPECT_EQ(change_error([](CheckedOptions& o) {
              o.width = 65;
              o.mode = "x";
            }),
            "trainer.width: expected a value from 1 to 64, got 65\n"
            "trainer.mode: expected one of same, valid, got 'x'.");
}

}  // namespace
}  // namespace cytra::config
