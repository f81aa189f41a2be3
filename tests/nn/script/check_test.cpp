// TorchScript that does what a model may not, and honest one: tests/golden/make_scripts.py.
#include <algorithm>
#include <filesystem>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "config/json.h"
#include "nn/script/load.h"
#include "tests/support/message_of.h"
#include "tests/support/tmp_dir.h"

namespace cytra::nn {
namespace {

namespace fs = std::filesystem;

const std::string kScripts = std::string(CYTRA_SOURCE_DIR) + "/tests/golden/scripts/";

torch::jit::Module load_script(const std::string& path) {
  ExtraFiles files;
  return load_any_torchscript(path, files);
}

TEST(ScriptCheck, HostileOnesAreRefusedBeforeTheyRun) {
  const test::TmpDir dir;
  const fs::path before = fs::current_path();
  int refused = 0;
  for (const fs::directory_entry& file : fs::directory_iterator(kScripts + "hostile")) {
    SCOPED_TRACE(file.path().filename().string());
    fs::current_path(dir / "");  // where they would write
    const std::string message = message_of<DataError>([&] { load_script(file.path().string()); });
    EXPECT_TRUE(fs::is_empty(dir / ""));
    fs::current_path(before);
    EXPECT_EQ(message.find(file.path().string() + ": "), 0U) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    ++refused;
  }
  EXPECT_GE(refused, 50);
}

TEST(ScriptCheck, TheMessageNamesTheCallAndItsPlace) {
  const auto said = [](const std::string& name) {
    const std::string message = message_of<DataError>([&] { load_script(kScripts + name); });
    return message.substr(message.find(": ") + 2);
  };
  const std::string end =
      ", which models from others must not do (docs/security.md): it is not run";
  EXPECT_EQ(said("hostile/state.pt"), "code/__torch__.py calls aten::save" + end);
  EXPECT_EQ(said("hostile/profiler.pt"),
            "code/__torch__.py calls profiler::_record_function_enter" + end);
  EXPECT_EQ(said("hostile/by_hand_alias_torch.pt"),
            "code/__torch__.py gives `torch` another name" + end);
  EXPECT_EQ(said("hostile/by_hand_getattr_escape.pt"),
            "code/__torch__.py calls getattr with no plain name" + end);
  EXPECT_EQ(said("hostile/by_hand_native_state.pt"),
            "data.pkl makes a __torch__.torch.classes._nnapi.Compilation" + end);
}

TEST(ScriptCheck, HonestOnesGiveWhatPyTorchDoes) {
  const config::Node expected =
      config::parse_json(read_file(kScripts + "honest/expected.json"), "expected.json");
  EXPECT_GE(expected.map.size(), 20U);
  for (const auto& [name, one] : expected.map) {
    SCOPED_TRACE(name);
    torch::jit::Module module = load_script(kScripts + "honest/" + name + ".pt");
    const c10::InferenceMode inference_mode;
    const auto shape = one.get<std::vector<int64_t>>("shape");
    int64_t count = 1;
    for (const int64_t side : shape) count *= side;
    const at::Tensor image = at::linspace(0, 1, count).reshape(shape);
    const bool is_half = one.get<std::string>("type") == "torch.bfloat16";
    const c10::IValue output = module.forward({is_half ? image.to(at::kBFloat16) : image});
    double sum = 0;
    const auto add = [&](const at::Tensor& values) {
      sum += values.to(at::kDouble).abs().sum().item<double>();
    };
    if (output.isTensor()) {
      add(output.toTensor());
    } else {
      for (const auto& entry : output.toGenericDict()) add(entry.value().toTensor());
    }
    const double wanted = one.get<double>("sum");
    // bfloat16 has 8 bits; 8-bit numbers may round to the next one on another processor
    const double tolerance = is_half || name == "quantized" ? 2e-2 : 1e-4;
    EXPECT_NEAR(sum, wanted, tolerance * std::max(1.0, wanted));
  }
}

TEST(ScriptCheck, WhatIsPrintedDoesNotReachStdout) {
  testing::internal::CaptureStdout();
  torch::jit::Module module = load_script(kScripts + "printing.pt");
  module.forward({at::zeros({1, 1, 4, 4})});
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
}

}  // namespace
}  // namespace cytra::nn
