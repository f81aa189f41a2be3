// The tests' main: gtest's, and CYTRA_SKIPPED is the exit code where a test is skipped and none
// fails, as ctest lists it then.
#include <cstdlib>

#include <gtest/gtest.h>

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const int code = RUN_ALL_TESTS();
  const char* skipped = std::getenv("CYTRA_SKIPPED");
  if (code != 0 || skipped == nullptr) return code;
  return testing::UnitTest::GetInstance()->skipped_test_count() > 0 ? std::atoi(skipped) : 0;
}
