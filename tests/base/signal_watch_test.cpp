#include "base/signal_watch.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <thread>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files.h"
#include "base/foreign_call.h"
#include "base/signals.h"
#include "tests/support/tmp_dir.h"

namespace cytra {
namespace {

namespace fs = std::filesystem;

/// The exit code of `work` in a process of its own; 1 where it comes to an end by itself.
int exit_code_of(const std::function<void()>& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    watch_signals();
    work();
    ::_exit(1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void work_for_a_minute() {
  std::this_thread::sleep_for(std::chrono::minutes(1));
}
void pause_ms(int ms) {
  std::this_thread::sleep_for(std::chrono::milliseconds(ms));
}

TEST(SignalWatch, EndsWorkThatNeverLooks) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1}) {
    const test::TmpDir dir;
    EXPECT_EQ(
        exit_code_of([&] {
          const SignalWatch watch([&](int got) { write_file(dir / "got", std::to_string(got)); });
          ::raise(signal);
          work_for_a_minute();
        }),
        signal_exit_code(signal));
    EXPECT_EQ(read_file(dir / "got"), std::to_string(signal));
  }
}

TEST(SignalWatch, OneThatIsOverEndsNothing) {
  EXPECT_EQ(exit_code_of([] {
              {
                const SignalWatch watch([](int) {});
              }
              SignalWatch stopped([](int) {});
              stopped.stop();
              ::raise(SIGINT);
              pause_ms(200);
              ::_exit(3);
            }),
            3);
}

TEST(SignalWatch, WhatIsBeingFinishedHasAMoment) {
  const test::TmpDir dir;
  EXPECT_EQ(exit_code_of([&] {
              std::atomic<bool> is_finishing{true};
              const SignalWatch watch([](int) {}, [&] { return is_finishing.load(); });
              ::raise(SIGINT);
              pause_ms(200);
              write_file(dir / "finished", "");
              is_finishing = false;
              work_for_a_minute();
            }),
            130);
  EXPECT_TRUE(fs::exists(dir / "finished"));
}

TEST(ForeignCall, OneThatHangsEndsAndLeavesNothing) {
  const test::TmpDir dir;
  EXPECT_EQ(exit_code_of([&] {
              const AtomicFile half_written(dir / "video.mp4");
              const ForeignCall call;
              ::raise(SIGTERM);
              work_for_a_minute();
            }),
            143);
  EXPECT_TRUE(fs::is_empty(dir / "."));
}

TEST(ForeignCall, OnesThatComeBackEndNothing) {
  EXPECT_EQ(exit_code_of([&] {
              ::raise(SIGTERM);
              for (int i = 0; i < 60; ++i) {
                const ForeignCall call;
                pause_ms(100);
              }
              ::_exit(3);
            }),
            3);
}

TEST(StartOfWork, LeavesNothing) {
  const test::TmpDir dir;
  EXPECT_EQ(exit_code_of([&] {
              const StartOfWork start("the first step");
              make_folders(dir / "cache");
              const std::string folder = make_with_start([&] {
                make_folders(dir / "run/logs");
                return dir / "run";
              });
              write_file(folder + "/config.yaml", "a: 1\n");
              const AtomicFile half_written(dir / "cache/image");
              ::raise(SIGTERM);
              work_for_a_minute();
            }),
            143);
  EXPECT_FALSE(fs::exists(dir / "run"));
  EXPECT_TRUE(fs::is_empty(dir / "cache"));
}

TEST(StartOfWork, AFolderThatIsBeingMadeGoesAsWell) {
  const test::TmpDir dir;
  EXPECT_EQ(exit_code_of([&] {
              const StartOfWork start("the first step");
              make_with_start([&] {
                ::raise(SIGINT);
                pause_ms(200);
                make_folders(dir / "run");
                return dir / "run";
              });
              work_for_a_minute();
            }),
            130);
  EXPECT_FALSE(fs::exists(dir / "run"));
}

TEST(StartOfWork, WorkThatSeesTheSignalFirstChangesNothing) {
  const test::TmpDir dir;
  EXPECT_EQ(exit_code_of([&] {
              const StartOfWork start("the first step");
              ::raise(SIGINT);
              start_is_over();
              write_file(dir / "checkpoint", "of no step");
            }),
            130);
  EXPECT_FALSE(fs::exists(dir / "checkpoint"));
}

TEST(StartOfWork, BehindItTheWorkDecides) {
  const test::TmpDir dir;
  EXPECT_EQ(exit_code_of([&] {
              const StartOfWork start("the first step");
              make_with_start([&] {
                make_folders(dir / "run");
                return dir / "run";
              });
              start_is_over();
              start_is_over();
              ::raise(SIGINT);
              pause_ms(200);
              ::_exit(signal_received() == SIGINT ? 3 : 4);
            }),
            3);
  EXPECT_TRUE(fs::exists(dir / "run"));
}

TEST(BreakableWork, IsBrokenOffInItsThreadAlone) {
  EXPECT_EQ(exit_code_of([] {
              ::raise(SIGTERM);
              break_on_signal();  // nobody has said that this can be
              int code = 0;
              try {
                const BreakableWork breakable;
                std::thread([] { break_on_signal(); }).join();
                {
                  const BreakableWork not_now(false);
                  break_on_signal();
                }
                break_on_signal();
              } catch (const Interrupted& error) {
                code = error.code;
              }
              break_on_signal();
              ::_exit(code);
            }),
            143);
}

}  // namespace
}  // namespace cytra
