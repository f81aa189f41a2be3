#include "base/cache_folder.h"

#include <cstdlib>

#include <gtest/gtest.h>

namespace cytra {
namespace {

TEST(CacheFolder, IsBelowAnAbsolutePathAlone) {
  ::setenv("XDG_CACHE_HOME", "/kept", 1);
  EXPECT_EQ(cache_folder(), "/kept/cytra");
  ::setenv("HOME", "/home/me", 1);
  for (const char* ignored : {"", "relative/kept"}) {
    ::setenv("XDG_CACHE_HOME", ignored, 1);
    EXPECT_EQ(cache_folder(), "/home/me/.cache/cytra") << ignored;
  }
  ::setenv("HOME", "me", 1);
  EXPECT_EQ(cache_folder(), "");
}

}  // namespace
}  // namespace cytra
