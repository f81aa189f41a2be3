// What a user reads after a typical mistake: tests/golden/mistakes.txt. Each case: "# what", files
// ("@@ name" and their lines), "$ arguments", and the message ("> ..."). CYTRA_UPDATE_GOLDEN=1
// writes the messages anew; read the difference before you commit it.
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "base/files.h"
#include "base/strings.h"
#include "tests/support/program.h"

namespace cytra {
namespace {
namespace fs = std::filesystem;

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

struct Mistake {
  std::string lines, arguments, expected;  // lines: the case as it is written, up to "$ ..."
  std::vector<std::pair<std::string, std::string>> files;
};

std::vector<Mistake> read_mistakes(const std::string& text) {
  std::vector<Mistake> mistakes;
  bool in_file = false;
  for (const std::string& line : split(text, '\n')) {
    const bool ended = !mistakes.empty() && !mistakes.back().arguments.empty();
    if (line.starts_with("# ") && (mistakes.empty() || ended)) {
      mistakes.emplace_back();
      in_file = false;
    }
    if (mistakes.empty() || line.empty()) continue;
    Mistake& mistake = mistakes.back();
    if (ended && line.starts_with("> ")) {
      mistake.expected += line.substr(2) + "\n";
      continue;
    }
    mistake.lines += line + "\n";
    if (line.starts_with("@@ ")) {
      mistake.files.emplace_back(line.substr(3), "");
      in_file = true;
    } else if (line.starts_with("$ ")) {
      mistake.arguments = line.substr(2);
    } else if (in_file) {
      mistake.files.back().second += line + "\n";
    }
  }
  return mistakes;
}

TEST(Mistakes, EachHasItsMessage) {
  const std::string golden = CYTRA_SOURCE_DIR "/tests/golden/mistakes.txt";
  const std::vector<Mistake> mistakes = read_mistakes(read_file(golden));
  ASSERT_GE(mistakes.size(), 40U);
  std::string written;
  for (const Mistake& mistake : mistakes) {
    SCOPED_TRACE(mistake.lines);
    const test::TmpDir dir;
    for (const auto& [name, text] : mistake.files) {
      fs::create_directories(fs::path(dir / name).parent_path());
      std::ofstream(dir / name) << text;
    }
    const bool needs_path =
        mistake.arguments.find("experiment=im2im/segmentation") == std::string::npos;
    const test::Outcome outcome = test::shell(
        "cd / && \"$BIN/train\" --check " + std::string(needs_path ? "data.path=x " : "") +
        (mistake.arguments.find("--config-dir") == std::string::npos
             ? "--config-dir '" + (dir / "") + "' "
             : "") +
        mistake.arguments);
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    std::string err = replaced(outcome.err, dir / "", "DIR/");
    err = replaced(err, (dir / "").substr(0, (dir / "").size() - 1), "DIR");
    err = replaced(err, fs::weakly_canonical(CYTRA_SOURCE_DIR "/configs").string(), "configs");
    const bool has_place = err.find(".yaml:") != std::string::npos ||
                           err.find("command line '") != std::string::npos ||
                           err.find("--") != std::string::npos ||
                           err.find("/nope") != std::string::npos ||
                           err.find("no config 'trian'") != std::string::npos;
    EXPECT_TRUE(has_place) << err;
    written += (written.empty() ? "" : "\n") + mistake.lines;
    std::string expected;
    for (const std::string& line : split(trim(err), '\n')) {
      written += "> " + line + "\n";
      expected += line + "\n";
    }
    if (std::getenv("CYTRA_UPDATE_GOLDEN") == nullptr) {
      EXPECT_EQ(expected, mistake.expected);
    }
  }
  if (std::getenv("CYTRA_UPDATE_GOLDEN") != nullptr) std::ofstream(golden) << written;
}

}  // namespace
}  // namespace cytra
