#include "base/json_log.h"

#include <gtest/gtest.h>

namespace cytra::log {
namespace {

TEST(JsonLog, QuotesAsJsonDoes) {
  EXPECT_EQ(json_quote("größe \"a\\b\"\n\t\x01"), R"("größe \"a\\b\"\n\u0009\u0001")");
  EXPECT_EQ(json_quote(""), "\"\"");
}

}  // namespace
}  // namespace cytra::log
