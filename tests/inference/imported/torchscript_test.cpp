// TorchScript of users: tests/golden/make_models.py.

#include <filesystem>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/api/module.h>

#include "base/error.h"
#include "base/files.h"
#include "inference/imported/imported_model.h"
#include "inference/models/trained_model.h"
#include "tests/support/golden.h"
#include "tests/support/message_of.h"
#include "tests/support/tmp_dir.h"

namespace cytra::inference {
namespace {

const std::string kModels = std::string(CYTRA_SOURCE_DIR) + "/tests/golden/models/";

LoadedModel load_foreign(const std::string& path, const std::string& config = "") {
  CheckpointOptions options;
  options.ckpt_path = {path};
  if (!config.empty()) options.config = config;
  return load_models(options).at(0);
}

std::string error_of(const std::string& name) {
  return message_of<Error>([&] { load_foreign(kModels + name); });
}

struct ForeignCase {
  const char* name;
  int64_t in, out, dims;
  std::vector<int64_t> divisor;
};

TEST(TorchScript, ComputesWhatPyTorchDoes) {
  const io::SafetensorsFile expected(kModels + "expected.safetensors");
  const auto stored = [&](const std::string& key) {
    return nn::tensor_of(expected.tensors().at(key), key);
  };
  for (const ForeignCase& one : {ForeignCase{"traced.pt", 2, 3, 2, {4, 4}},
                                 ForeignCase{"frozen.pt", 2, 3, 2, {4, 4}},
                                 ForeignCase{"control flow.pt", 2, 3, 3, {1, 1, 1}},
                                 ForeignCase{"one_size.pt", 1, 1, 2, {64, 64}}}) {
    SCOPED_TRACE(one.name);
    const std::string name = one.name;
    const LoadedModel model = load_foreign(kModels + name);
    EXPECT_EQ(model.in_channels, one.in);
    EXPECT_EQ(model.out_channels, one.out);
    EXPECT_EQ(model.spatial_dims, one.dims);
    EXPECT_EQ(model.divisor, one.divisor);
    EXPECT_EQ(model.config.get<int64_t>("task.model.out_channels"), one.out);
    const c10::InferenceMode inference_mode;
    const std::vector<at::Tensor> outputs = model.forward(stored(name + "/in"));
    ASSERT_EQ(outputs.size(), name == "control flow.pt" ? 2U : 1U);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      EXPECT_LT(test::max_difference(outputs[i], stored(name + "/out" + std::to_string(i))), 1e-5)
          << i;
    }
  }
}

TEST(TorchScript, WindowsThatDoNotFitAreTheUsersToMend) {
  const LoadedModel model = load_foreign(kModels + "one_size.pt");
  EXPECT_EQ(model.config.get<std::vector<int64_t>>("task.inference_args.roi_size"),
            (std::vector<int64_t>{64, 64}));
  const std::string message = message_of<DataError>([&] {
    model.forward(at::rand({1, 1, 32, 32}));
  });
  EXPECT_EQ(message.find(kModels + "one_size.pt: it fails for windows of (1,1,32,32): The size "
                                   "of tensor a (32) must match the size of tensor b (64)"),
            0U)
      << message;
}

TEST(TorchScript, WhatIsNoModelOfImagesIsRefusedInOneLine) {
  const std::string two = error_of("two_inputs.pt"), saving = error_of("saving.pt"),
                    cut = error_of("cut.pt");
  EXPECT_EQ(two,
            kModels +
                "two_inputs.pt: its forward() takes 2 inputs (image, coordinates), expected "
                "one: the image");
  EXPECT_EQ(
      saving,
      kModels +
          "saving.pt: code/__torch__.py calls aten::save, which models from others must not do "
          "(docs/security.md): it is not run");
  EXPECT_EQ(cut,
            kModels +
                "cut.pt: the ZIP archive has no directory (cut or damaged?), expected a "
                "whole ZIP archive; copy it again");
  EXPECT_FALSE(std::filesystem::exists("cytra_was_here"));
}

TEST(TorchScript, DamageIsAnErrorNotACrash) {
  const std::string whole = read_file(kModels + "traced.pt");
  const test::TmpDir dir;
  const auto is_refused = [&](const std::string& bytes) {
    write_file(dir / "damaged model.pt", bytes);
    try {
      load_foreign(dir / "damaged model.pt");
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
      return true;
    }
    return false;
  };
  for (std::size_t size = 8; size < whole.size(); size += whole.size() / 20)
    EXPECT_TRUE(is_refused(whole.substr(0, size))) << size;
  int refused = 0;
  // The directory; elsewhere a damage may be a weight's, or a network's that computes for long.
  for (std::size_t at = whole.size() - 3000; at < whole.size(); at += 100) {
    std::string damaged = whole;
    for (std::size_t i = at; i < std::min(at + 12, whole.size()); ++i) damaged[i] ^= '\x5a';
    refused += is_refused(damaged) ? 1 : 0;
  }
  EXPECT_GT(refused, 10);
}

TEST(TorchScript, TheUserSaysWhatItDoesNot) {
  const test::TmpDir dir;
  write_file(dir / "model.yaml",
             "task: {x_key: image, multilabel: true, model: {divisor: [8, 8]}}\n"
             "data: {transforms: {valid: [{_target_: LoadImaged, keys: image}]}}\n");
  const LoadedModel model = load_foreign(kModels + "traced.pt", dir / "model.yaml");
  EXPECT_EQ(model.divisor, (std::vector<int64_t>{8, 8}));
  EXPECT_EQ(model.config.get<std::string>("task.x_key"), "image");
  EXPECT_EQ(model.config.get<std::string>("task.y_key"), "seg");
  EXPECT_EQ(model.out_channels, 3);
  write_file(dir / "model.yaml", "task: {model: {in_channels: 5}}\n");
  const std::string message =
      message_of<DataError>([&] { load_foreign(kModels + "traced.pt", dir / "model.yaml"); });
  EXPECT_NE(message.find("it fails for windows of (1,5,512,512)"), std::string::npos) << message;
  EXPECT_NE(message.find("expected input"), std::string::npos) << message;
}

/// Saves a module of one forward(), with a parameter p of these sides.
void save_script(const std::string& path,
                 const std::string& forward,
                 const std::vector<int64_t>& sides = {1}) {
  torch::jit::Module module("Net");
  module.register_parameter("p", at::ones(sides), false);
  module.define("def forward(self, x: Tensor):\n    return " + forward + "\n");
  module.save(path);
}
const std::string kGrey = "task: {model: {in_channels: 1, spatial_dims: 2";

TEST(TorchScript, IsRunAtTheOnlySizeThatItTakes) {
  const test::TmpDir dir;
  using Sides = std::vector<int64_t>;
  for (const Sides& sides :
       {Sides{32, 32}, {40, 40}, {100, 100}, {160, 160}, {320, 320}, {64, 96}}) {
    SCOPED_TRACE(fmt::format("{}", fmt::join(sides, "x")));
    const std::string text = fmt::format("[{}]", fmt::join(sides, ", "));
    save_script(dir / "net.pt", "x + self.p", {1, 1, sides[0], sides[1]});
    for (const std::string& said :
         std::vector<std::string>{"}}\n",
                                  ", sides: " + text + "}}\n",
                                  ", divisor: " + text + "}}\n",
                                  "}, inference_args: {roi_size: " + text + "}}\n"}) {
      write_file(dir / "net.yaml", kGrey + said);
      if (said.size() == 3 && sides[0] != sides[1]) {
        EXPECT_NE(message_of<DataError>([&] {
                    load_foreign(dir / "net.pt", dir / "net.yaml");
                  }).find("task.model.sides: ["),
                  std::string::npos);
        continue;
      }
      const LoadedModel model = load_foreign(dir / "net.pt", dir / "net.yaml");
      EXPECT_EQ(model.fixed_window, sides) << said;
      EXPECT_EQ(model.config.get<Sides>("task.inference_args.roi_size"), sides) << said;
    }
  }
  for (const std::string wrong : {"[0, 32]", "[1, 2, 3]", "{a: 1}", "[-4, 4]", "[]"}) {
    write_file(dir / "net.yaml", kGrey + ", divisor: " + wrong + "}}\n");
    EXPECT_NE(message_of<ConfigError>([&] { load_foreign(dir / "net.pt", dir / "net.yaml"); }), "")
        << wrong;
  }
  write_file(dir / "net.yaml", kGrey + ", divisor: null}}\n");
  save_script(dir / "net.pt", "x + self.p");
  EXPECT_EQ(load_foreign(dir / "net.pt", dir / "net.yaml").divisor, (Sides{1, 1}));
}

TEST(TorchScript, DropsNothingInAPrediction) {
  const test::TmpDir dir;
  write_file(dir / "net.yaml", kGrey + "}}\n");
  const at::Tensor image = at::rand({1, 1, 16, 16});
  for (const char* forward : {"torch.dropout(x, 0.5, True) * self.p",
                              "torch.feature_dropout(x, 0.5, True) * self.p",
                              "torch.alpha_dropout(x, 0.5, True) * self.p",
                              "torch.rrelu(x, 0.1, 0.3, True) * self.p"}) {
    save_script(dir / "net.pt", forward);
    const LoadedModel model = load_foreign(dir / "net.pt", dir / "net.yaml");
    EXPECT_TRUE(model.forward(image)[0].equal(image)) << forward;
  }
}

TEST(TorchScript, TheFingerprintFollowsTheWeights) {
  EXPECT_EQ(load_foreign(kModels + "traced.pt").fingerprint,
            load_foreign(kModels + "traced.pt").fingerprint);
  EXPECT_NE(load_foreign(kModels + "traced.pt").fingerprint,
            load_foreign(kModels + "frozen.pt").fingerprint);
}

TEST(TorchScript, TheFingerprintIsTheFilesContent) {
  const test::TmpDir dir;
  const std::string frozen = kModels + "frozen.pt";
  std::string bytes = read_file(frozen);
  write_file(dir / "copy.pt", bytes);
  EXPECT_EQ(fingerprint_of_file(frozen), fingerprint_of_file(dir / "copy.pt"));
  char& byte = bytes[bytes.size() / 2];
  byte = static_cast<char>(byte ^ 1);  // a weight, which is a constant of the code
  write_file(dir / "copy.pt", bytes);
  EXPECT_NE(fingerprint_of_file(frozen), fingerprint_of_file(dir / "copy.pt"));
}

}  // namespace
}  // namespace cytra::inference
