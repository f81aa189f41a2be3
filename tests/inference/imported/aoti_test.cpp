// AOTInductor. Its machine code is of one processor and too large to keep: what is told before any
// of it runs.
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "inference/models/trained_model.h"
#include "tests/support/message_of.h"
#include "tests/support/tmp_dir.h"

namespace cytra::inference {
namespace {

using Files = std::vector<std::pair<std::string, std::string>>;

std::string number(uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i) & 0xff);
  return text;
}

/// A ZIP archive whose files are stored as they are.
std::string zip(const Files& files) {
  std::string all, directory;
  for (const auto& [name, content] : files) {
    const std::string sizes = number(0, 4) + number(content.size(), 4) + number(content.size(), 4) +
                              number(name.size(), 2) + number(0, 2);
    directory += "PK\1\2" + number(20, 2) + number(20, 2) + number(0, 8) + sizes + number(0, 10) +
                 number(all.size(), 4) + name;
    all += "PK\3\4" + number(20, 2) + number(0, 8) + sizes + name + content;
  }
  return all + directory + "PK\5\6" + number(0, 4) + number(files.size(), 2) +
         number(files.size(), 2) + number(directory.size(), 4) + number(all.size(), 4) +
         number(0, 2);
}

std::string error_of_package(const std::string& source, const std::string& isa) {
  const test::TmpDir dir;
  const std::string path = dir / "compiled model.pt2", folder = "m/data/aotinductor/model/x.";
  write_file(path,
             zip({{folder + "wrapper.cpp", source},
                  {folder + "wrapper_metadata.json",
                   "{\"AOTI_DEVICE_KEY\": \"cpu\", \"AOTI_CPU_ISA\": \"" + isa + "\"}"}}));
  CheckpointOptions options;
  options.ckpt_path = {path};
  std::string message = message_of<DataError>([&] { load_models(options); });
  EXPECT_EQ(message.find(path + ": "), 0U) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  return message.substr(std::min(message.size(), path.size() + 2));
}

const std::string kChecks =
    "AOTI_NOINLINE static void check_input_0(\n"
    "    if (2 != arg4_1_size[0]) {\n    if (arg4_1_size[1] < 2) {\n    if (arg4_1_size[1] > 2) {\n"
    "    if (32 != arg4_1_size[2]) {\n    if (48 != arg4_1_size[3]) {\n";

TEST(Aoti, WhatIsNoModelOfImagesIsRefusedInOneLine) {
  EXPECT_EQ(error_of_package("int main() {}", ""),
            "it does not say which shapes it takes; compile it again with PyTorch 2.11");
  EXPECT_EQ(error_of_package(kChecks + "AOTI_NOINLINE static void check_input_1(", ""),
            "it takes several inputs, expected one: the image");
  EXPECT_EQ(error_of_package("static void check_input_0(\nif (2 != x_size[0]) {", ""),
            "its input has 1 dimensions that are known, expected 4 or 5: (N,C,[D,]H,W)");
  EXPECT_NE(error_of_package(kChecks, "AVX2").find("a compiled model that can't be loaded"),
            std::string::npos);
}

TEST(Aoti, ANetworkOfTorchExportIsAnsweredWithTheWay) {
  const test::TmpDir dir;
  write_file(dir / "program.pt2", zip({{"p/models/model.json", "{}"}}));
  CheckpointOptions options;
  options.ckpt_path = {dir / "program.pt2"};
  const std::string message = message_of<DataError>([&] { load_models(options); });
  EXPECT_NE(message.find("a network of torch.export, without a task; train it"), std::string::npos)
      << message;
}

}  // namespace
}  // namespace cytra::inference
