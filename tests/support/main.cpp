// The tests' main: gtest's, and CYTRA_SKIPPED is the exit code where a test is skipped and none
// fails, as ctest lists it then.
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include <gtest/gtest.h>

extern "C" {  // of the sanitizers' libraries, which look for leaks at the end of the process
void __asan_init() __attribute__((weak));
void __tsan_init() __attribute__((weak));
}

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  std::signal(SIGHUP, SIG_DFL);  // under nohup, too
  int code = RUN_ALL_TESTS();
  const char* skipped = std::getenv("CYTRA_SKIPPED");
  if (code == 0 && skipped != nullptr && testing::UnitTest::GetInstance()->skipped_test_count() > 0)
    code = std::atoi(skipped);
  if (__asan_init != nullptr || __tsan_init != nullptr) return code;
  std::fflush(nullptr);
  std::_Exit(code);  // as the programs do: destroying torch's registries takes 0.13 s
}
