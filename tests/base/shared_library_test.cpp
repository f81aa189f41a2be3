#include "base/shared_library.h"

#include <filesystem>

#include <dlfcn.h>
#include <gtest/gtest.h>

namespace cytra {
namespace {

using Symbols = SharedLibrary::Symbols;
using Bound = unsigned long (*)(unsigned long);
constexpr const char *kLibrary = "libz.so.1", *kFunction = "compressBound";  // not linked here

TEST(SharedLibrary, FindsFunctions) {
  SharedLibrary library(kLibrary, Symbols::local);
  ASSERT_TRUE(library.is_loaded()) << library.problem();
  const auto bound = library.find<Bound>(kFunction);
  ASSERT_NE(bound, nullptr) << library.problem();
  EXPECT_GE(bound(1000), 1000U);
  EXPECT_EQ(library.problem(), "");
  EXPECT_TRUE(std::filesystem::exists(path_beside(bound, kLibrary)));
  EXPECT_EQ(library.find<Bound>("no_such_function"), nullptr);
  EXPECT_NE(library.problem().find("no_such_function"), std::string::npos) << library.problem();
}

TEST(SharedLibrary, ShowsItsFunctionsToOthersWhereAsked) {
  const SharedLibrary hidden(kLibrary, Symbols::local);
  EXPECT_EQ(::dlsym(RTLD_DEFAULT, kFunction), nullptr);
  const SharedLibrary shown(kLibrary, Symbols::global);
  EXPECT_NE(::dlsym(RTLD_DEFAULT, kFunction), nullptr);
}

TEST(SharedLibrary, TellsWhyItIsNotLoaded) {
  SharedLibrary library("/no/such/library.so", Symbols::global);
  EXPECT_FALSE(library.is_loaded());
  const std::string problem = library.problem();
  EXPECT_NE(problem.find("/no/such/library.so"), std::string::npos) << problem;
  EXPECT_EQ(library.find<Bound>(kFunction), nullptr);
  EXPECT_EQ(library.problem(), problem);
}

}  // namespace
}  // namespace cytra
