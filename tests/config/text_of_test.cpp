#include "config/text_of.h"

#include <gtest/gtest.h>

namespace cytra::config {
namespace {

struct WrittenInner {
  double rate = 0.5;
  std::optional<int64_t> bounded;
  void visit(auto& v) {
    v("rate", rate, "rate", 0, 1);
    v("bounded", bounded, "number", 1, 3);
  }
};

struct WrittenOptions {
  int64_t width = 8, batch = 1;
  std::string mode = "a;b=\"c\"";
  bool is_on = true;
  std::vector<int64_t> sizes{1, 2};
  std::vector<WrittenInner> parts{{}};
  Node steps;
  WrittenInner inner;
  void visit(auto& v) {
    v("width", width, "features", 1, 64);
    v("batch", batch, "images", Keyword{1, 64, "AUTO", 0});
    v("mode", mode, "border", {"same", "valid"});
    v("is_on", is_on, "a switch");
    v("sizes", sizes, "sizes", required);
    v("parts", parts, "parts");
    v("steps", steps, "anything");
    v("inner", inner, "inner");
    v("tags", Unused{}, "of CytoDL");
  }
};

TEST(TextOf, HasEveryOption) {
  EXPECT_EQ(text_of(WrittenOptions()),
            "width=8;batch=1;mode=\"a;b=\\\"c\\\"\";is_on=true;sizes=[1,2,];"
            "parts=[{rate=0.5;bounded=null;},];steps=null;inner={rate=0.5;bounded=null;};");
}

TEST(TextOf, DiffersWithEachValue) {
  const std::string usual = text_of(WrittenOptions());
  WrittenOptions options;
  options.inner.bounded = 2;
  EXPECT_NE(text_of(options), usual);
  options = WrittenOptions();
  options.sizes = {12};
  EXPECT_NE(text_of(options), usual);
  options = WrittenOptions();
  options.steps = Node::make_string("null");
  EXPECT_NE(text_of(options), usual);
}

TEST(TextOf, LeavesOutWhatItIsToldAtAnyDepth) {
  EXPECT_EQ(text_of(WrittenOptions(), {"width", "mode", "rate", "sizes", "is_on", "steps"}),
            "batch=1;parts=[{bounded=null;},];inner={bounded=null;};");
}

}  // namespace
}  // namespace cytra::config
