// What a TorchScript file says of its modes, and files that can't be trained:
// tests/golden/make_torchscript.py. tests/nn/exported/exported_test.cpp compares the numbers.
#include <filesystem>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "config/registry.h"
#include "io/safetensors.h"
#include "nn/model.h"
#include "nn/weights.h"
#include "tests/support/golden.h"
#include "tests/support/message_of.h"
#include "tests/support/tmp_dir.h"

namespace cytra::nn {
namespace {

std::shared_ptr<Model> script_of(const std::string& file, const std::string& more = "") {
  config::Node node = config::parse_value("{" + more + "}", {});
  node.set("_target_", config::Node::make_string("ScriptModule"));
  node.set("file", config::Node::make_string(test::golden_folder() + "/torchscript/" + file));
  return make<Model>(node);
}

TEST(ScriptModule, DropoutsFollowTrainAndEvalAlsoOfTraces) {
  const at::NoGradGuard no_grad;
  const io::SafetensorsFile file(test::golden_folder() +
                                 "/torchscript/dropout/expected.safetensors");
  const at::Tensor image = tensor_of(file.tensors().at("image"), "image"),
                   output = tensor_of(file.tensors().at("output"), "output");
  for (const char* name : {"scripted", "traced", "traced_in_evaluation"}) {
    SCOPED_TRACE(name);
    const auto model = script_of(std::string("dropout/") + name + ".pt");
    model->eval();
    const auto before = state_of(*model);
    std::map<std::string, at::Tensor> kept;
    for (const auto& [key, tensor] : before) kept[key] = tensor.clone();
    EXPECT_LT(test::max_difference((*model)(image), output), 1e-5);
    EXPECT_EQ(test::max_difference((*model)(image), (*model)(image)), 0);
    for (const auto& [key, tensor] : before) EXPECT_TRUE(tensor.equal(kept.at(key))) << key;
    model->train();
    EXPECT_GT(test::max_difference((*model)(image), (*model)(image)), 0.01);
  }
}

TEST(ScriptModule, APartIsSetToEvaluationByItself) {
  const at::NoGradGuard no_grad;
  const auto model = script_of("scripted.pt");
  const auto statistics = [&] { return model->named_buffers()["a.1.running_mean"].clone(); };
  const at::Tensor before = statistics();
  model->named_modules()["a.1"]->eval();  // as LayerFreeze does
  (*model)(at::ones({2, 1, 16, 16}));
  EXPECT_TRUE(statistics().equal(before));
  model->train();
  (*model)(at::ones({2, 1, 16, 16}));
  EXPECT_FALSE(statistics().equal(before));
}

TEST(ScriptModule, ItsTypesAndMemoryFormatsAreChosenAfterwards) {
  const auto model = script_of("scripted.pt");
  const at::Tensor image = at::linspace(-1, 1, 512).view({2, 1, 16, 16});
  model->eval();
  const at::NoGradGuard no_grad;
  const at::Tensor expected = (*model)(image);
  model->settings.channels_last = true;
  place(*model, c10::kCPU);
  EXPECT_TRUE(
      model->named_parameters()["b.0.weight"].is_contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_LT(test::max_difference((*model)(image), expected), 1e-5);
  cast(*model, at::kDouble);
  EXPECT_LT(test::max_difference((*model)(image.to(at::kDouble)), expected.to(at::kDouble)), 1e-5);
}

TEST(ScriptModule, FindsWhatTheFileDoesNotSay) {
  const auto heads = script_of("scripted_dict.pt", "output: edge");
  EXPECT_EQ(heads->in_channels(), 2);
  EXPECT_EQ(heads->out_channels(), 3);
  EXPECT_EQ(heads->spatial_dims(), 2);
  EXPECT_EQ(heads->divisor(), (std::vector<int64_t>{1, 1}));
  EXPECT_EQ(script_of("scripted.pt")->divisor(), (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(script_of("traced_attention.pt")->divisor(), (std::vector<int64_t>{4, 4}));
  EXPECT_EQ(script_of("scripted.pt", "divisor: [8, 4]")->divisor(), (std::vector<int64_t>{8, 4}));
  EXPECT_EQ(script_of("scripted_3d.pt")->spatial_dims(), 3);
}

TEST(ScriptModule, TheCodeInACheckpointIsCheckedToo) {
  const test::TmpDir tmp;
  const auto said = [&](const std::string& code) {
    const at::Tensor bytes = at::tensor(
        at::ArrayRef<uint8_t>(reinterpret_cast<const uint8_t*>(code.data()), code.size()));
    io::write_safetensors(
        tmp / "a.ckpt", {{"model.exported_program.torchscript", view_of(bytes)}}, {});
    return message_of<DataError>([&] {
      script_of(std::filesystem::relative(tmp / "a.ckpt", test::golden_folder() + "/torchscript"));
    });
  };
  const std::string hostile = read_file(test::golden_folder() + "/scripts/hostile/state.pt");
  EXPECT_NE(said(hostile).find("calls aten::save"), std::string::npos) << said(hostile);
  const std::string cut = said(hostile.substr(0, hostile.size() / 2));
  EXPECT_NE(cut.find("TorchScript that can't be loaded"), std::string::npos) << cut;
  const std::string honest = read_file(test::golden_folder() + "/torchscript/scripted.pt");
  EXPECT_NE(said(honest).find("has a tensor that the checkpoint lacks"), std::string::npos);
}

TEST(ScriptModule, WhatCantBeTrainedIsOneLineWithTheReason) {
  struct Mistake {
    const char *file, *options, *said;
  };
  for (const Mistake& one : {
           Mistake{"wrong/frozen.pt", "", "without parameters: its weights are constants"},
           Mistake{"wrong/half.pt", "", "weight is Half, expected Float"},
           Mistake{"wrong/double.pt", "", "weight is Double, expected Float"},
           Mistake{"wrong/quantized.pt", "", "compute with integers (quantized::linear_dynamic)"},
           Mistake{"wrong/two_inputs.pt", "", "takes 2 inputs (input1, input2), expected one"},
           Mistake{"wrong/no_forward.pt", "", "TorchScript without forward()"},
           Mistake{"wrong/weights.pth", "", "checkpoint.weights_only=true"},
           Mistake{"wrong/flat.pt", "", "forward() gives (1,"},
           Mistake{"wrong/smaller.pt", "", "expected its sides"},
           Mistake{"../exported/net.pt2", "", "model=exported"},
           Mistake{"scripted.safetensors", "", "expected TorchScript (torch.jit.save)"},
           Mistake{"../scripts/hostile/state.pt", "", "calls aten::save"},
           Mistake{"none.pt", "", "none.pt"},
           Mistake{"scripted.pt", "in_channels: 3", "model.in_channels: 3, but its first"},
           Mistake{"scripted_recurrent.pt", "", "1, got 12; model.in_channels gives"},
           Mistake{"scripted.pt", "out_channels: 2", "has 1; set it to 1"},
           Mistake{"scripted.pt", "divisor: [2]", "model.divisor: expected 2 numbers from 1"},
           Mistake{"scripted_dict.pt", "output: edges", "expected one of mask, edge. Did you"},
           Mistake{"scripted.pt", "gradient_checkpointing: true", "expected false"},
       }) {
    SCOPED_TRACE(one.file);
    const std::string message = message_of<Error>([&] { script_of(one.file, one.options); });
    EXPECT_NE(message.find(one.said), std::string::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace cytra::nn
