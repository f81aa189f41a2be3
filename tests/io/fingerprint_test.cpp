#include "io/fingerprint.h"

#include <gtest/gtest.h>

namespace cytra::io {
namespace {

TEST(Fingerprint, IsXxh3) {  // as `xxhsum -H2` writes it
  EXPECT_EQ(fingerprint(""), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(fingerprint("cytra"), "04e207b9edde13aad39070c286f770e6");
  EXPECT_EQ(fingerprint("cytra!", 5), fingerprint("cytra"));
}

}  // namespace
}  // namespace cytra::io
