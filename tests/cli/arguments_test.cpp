#include "cli/arguments.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "tests/support/tmp_dir.h"

namespace cytra::cli {
namespace {

std::string override_of(std::string word) {
  const Program program{"p", "", "", "p", "p", {}};
  std::string name = "p";
  char* argv[] = {name.data(), word.data(), nullptr};
  return parse_arguments(program, 2, argv).overrides.at(0);
}

TEST(Arguments, DataPathIsNamedAsItIsStored) {
  const test::TmpDir dir;
  std::filesystem::create_directories(dir / "Mu\u0308ller, A");  // as macOS writes it
  EXPECT_EQ(override_of("data.path='" + dir / "M\u00fcller, A" + "'"),
            "data.path='" + dir / "Mu\u0308ller, A" + "'");
  for (const std::string& word : {"data.path=" + dir / "M\u00fcllers",
                                  "data.path=" + dir.path(),
                                  std::string("data.path='not closed"),
                                  "run_name=" + dir / "M\u00fcller, A"})
    EXPECT_EQ(override_of(word), word);
}

}  // namespace
}  // namespace cytra::cli
