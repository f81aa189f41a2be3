#include "nn/weights.h"

#include "base/error.h"
#include "config/registry.h"
#include "nn/model.h"
#include "tests/support/golden.h"
#include "tests/support/message_of.h"

namespace cytra {
namespace {

const std::string kFolder = std::string(CYTRA_SOURCE_DIR) + "/tests/golden/torch/";

std::shared_ptr<nn::Model> dynunet(const std::string& options) {
  return make<nn::Model>("{_target_: DynUNet, " + options + "}");
}
std::shared_ptr<nn::Model> same_as_golden() {
  return dynunet("out_channels: 2, filters: [4, 6, 8]");
}

TEST(Weights, OfTorchGiveMonaisLogits) {
  const auto model = same_as_golden();
  nn::load_weights(kFolder + "dynunet.pth", *model, true);  // state_dict, _orig_mod.module.
  model->eval();
  const io::SafetensorsFile expected(kFolder + "expected.safetensors");
  const auto stored = [&](const std::string& name) {
    return nn::tensor_of(expected.tensors().at(name), name);
  };
  const at::NoGradGuard no_grad;
  EXPECT_LT(test::max_difference((*model)(stored("dynunet.input")), stored("dynunet.logits")),
            1e-5);
}

TEST(Weights, NamesFitWhateverStandsBeforeThem) {
  const auto model = same_as_golden();
  const auto state = nn::state_of(*model);
  const auto renamed = [&](const std::string& prefix) {
    io::TensorViews views;
    for (const auto& [name, tensor] : state) views[prefix + name] = nn::view_of(tensor);
    return views;
  };
  for (const char* prefix : {"", "model.", "module.", "net._orig_mod.", "a.b.c."}) {
    io::TensorViews views = renamed(prefix);
    views["loss.weight"] = views.begin()->second;
    views["ema." + state.begin()->first] = views.begin()->second;
    const io::TensorViews fitted = nn::fit_names(*model, views, "a.pth");
    EXPECT_EQ(fitted.size(), state.size() + (*prefix == '\0' ? 2 : 0)) << prefix;
    for (const auto& [name, tensor] : state)
      EXPECT_EQ(fitted.at(name).data, tensor.const_data_ptr()) << prefix << name;
  }
  // Weights and their running mean: the weights.
  io::TensorViews both = renamed("net.");
  for (const auto& [name, view] : renamed("ema.")) {
    both[name] = view;
    both[name].data = nullptr;
  }
  for (const auto& [name, view] : nn::fit_names(*model, both, "a.pth"))
    EXPECT_NE(view.data, nullptr) << name;
  // What all names of the model begin with is missing in the file.
  torch::nn::Module wrapper;
  wrapper.register_module("model", model);
  EXPECT_EQ(nn::fit_names(wrapper, renamed("net."), "a.pth").count("model." + state.begin()->first),
            1U);
}

TEST(Weights, EverythingThatDoesNotFitIsListed) {
  const auto wider = dynunet("out_channels: 2, filters: [4, 6, 16], trans_bias: true");
  const at::Tensor before = wider->parameters().front().clone();
  for (const bool strict : {true, false}) {
    const std::string message =
        message_of<DataError>([&] { nn::load_weights(kFolder + "dynunet.pth", *wider, strict); });
    for (const char* part : {"2 missing (upsamples.0.transp_conv.conv.bias",
                             "of another shape (bottleneck.conv1.conv.weight is (8,6,3,3), the "
                             "model's is (16,6,3,3)",
                             "and 2 more",
                             "another model configuration"})
      EXPECT_NE(message.find(part), std::string::npos) << part << " is not in: " << message;
  }
  EXPECT_EQ(test::max_difference(wider->parameters().front(), before), 0) << "some were loaded";
  const std::string message =
      message_of<DataError>([&] { nn::load_weights(kFolder + "plain.pth", *wider, false); });
  EXPECT_NE(message.find("7 unexpected (0.bias"), std::string::npos) << message;
  EXPECT_NE(message.find("none of the model's names"), std::string::npos) << message;
}

TEST(Weights, ATorchFileIsNoCheckpoint) {
  const std::string message =
      message_of<DataError>([] { nn::checkpoint_config(kFolder + "plain.pth"); });
  EXPECT_NE(message.find("checkpoint.config="), std::string::npos) << message;
}

}  // namespace
}  // namespace cytra
