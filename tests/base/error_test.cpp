#include "base/error.h"

#include <cerrno>
#include <filesystem>

#include <gtest/gtest.h>

namespace cytra {
namespace {

TEST(ExitCode, TellsTheUsersMistakeFromOurs) {
  EXPECT_EQ(exit_code(ConfigError("x")), 2);
  EXPECT_EQ(exit_code(DataError("x")), 2);
  EXPECT_EQ(exit_code(IoError("x")), 4);
  EXPECT_EQ(exit_code(MemoryError("x")), 5);
  EXPECT_EQ(exit_code(std::bad_alloc()), 5);
  EXPECT_EQ(exit_code(DivergedError("x")), 6);
  EXPECT_EQ(exit_code(std::logic_error("x")), 1);
}

TEST(ExitCode, OfAPathIsThatOfItsErrno) {
  const auto of = [](int number) {
    const std::error_code code(number, std::generic_category());
    return exit_code(std::filesystem::filesystem_error("status", "a", code));
  };
  EXPECT_EQ(of(ELOOP), 2);
  EXPECT_EQ(of(ENAMETOOLONG), 2);
  EXPECT_EQ(of(ENOSPC), 4);
  EXPECT_EQ(of(ENOMEM), 5);
}

TEST(Nearest, FindsTyposAndNothingElse) {
  EXPECT_EQ(nearest("max_epoch", {"max_steps", "max_epochs", "min_epochs"}), "max_epochs");
  EXPECT_EQ(nearest("dynunte", {"dynunet", "unetr"}), "dynunet");
  EXPECT_EQ(nearest("zzz", {"alpha", "beta"}), "");
}

TEST(Suggestion, ListsTheChoicesWhenNothingIsNear) {
  EXPECT_EQ(suggestion("zzz", {"alpha", "beta"}), " Choices: alpha, beta.");
  EXPECT_EQ(suggestion("alpa", {"alpha", "beta"}), " Did you mean 'alpha'?");
  EXPECT_EQ(suggestion("albumentations.Blur", {"Rotated"}), " In Cytra it is RandGaussianSmoothd.");
  EXPECT_EQ(suggestion("Rotate", {"Rotated"}),
            " In Cytra it is RandRotated (range_x, in radians).");
}

TEST(ThrowErrno, AFullDiskIsNoMistakeOfTheUser) {
  EXPECT_THROW(throw_errno("can't be written", "a", ENOSPC), IoError);
  EXPECT_THROW(throw_errno("can't be written", "a", EACCES), ConfigError);
  EXPECT_THROW(throw_errno("can't be read", "a", ENOENT), ConfigError);
}

}  // namespace
}  // namespace cytra
