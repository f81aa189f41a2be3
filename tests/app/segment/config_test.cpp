#include "app/segment/config.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/support/message_of.h"

namespace cytra::app {
namespace {

TEST(SegmentDetectors, AViewHasItsOwnOrTheCommonOne) {
  SegmentDetectorOptions options;
  options.views = config::parse_yaml("{front: a.ckpt}", "test");
  EXPECT_EQ(options.of("front"), "a.ckpt");
  EXPECT_NE(message_of<ConfigError>([&] { options.of("left"); }).find("'left'"), std::string::npos);
  options.path = "b.ckpt";
  EXPECT_EQ(options.of("left"), "b.ckpt");
  EXPECT_EQ(options.of("front"), "a.ckpt");
  EXPECT_THROW(SegmentDetectorOptions().check(), ConfigError);
}

}  // namespace
}  // namespace cytra::app
