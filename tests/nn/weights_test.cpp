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
  nn::load_weights(kFolder + "dynunet.pth", *model);  // state_dict, _orig_mod.module.
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
  for (const nn::Fit fit : {nn::Fit::all, nn::Fit::names}) {
    const std::string message =
        message_of<DataError>([&] { nn::load_weights(kFolder + "dynunet.pth", *wider, fit); });
    for (const char* part : {"2 missing (upsamples.0.transp_conv.conv.bias",
                             "of another shape (bottleneck.conv1.conv.weight is (8,6,3,3), the "
                             "model's is (16,6,3,3)",
                             "and 2 more",
                             "another model configuration"})
      EXPECT_NE(message.find(part), std::string::npos) << part << " is not in: " << message;
  }
  EXPECT_EQ(test::max_difference(wider->parameters().front(), before), 0) << "some were loaded";
  const std::string message = message_of<DataError>(
      [&] { nn::load_weights(kFolder + "plain.pth", *wider, nn::Fit::names); });
  EXPECT_NE(message.find("7 unexpected (0.bias"), std::string::npos) << message;
  EXPECT_NE(message.find("none of the model's names"), std::string::npos) << message;
}

// Fine-tuning: other classes, other channels or both leave their layers as they are; another
// network is refused.
TEST(Weights, AStartTakesWhatFits) {
  const std::string file = kFolder + "dynunet.pth", channels = "filters: [4, 6, 8]";
  const auto taken = same_as_golden();
  nn::load_weights(file, *taken);
  const auto expected = nn::state_of(*taken);
  for (const char* other : {"out_channels: 5, ",
                            "in_channels: 3, out_channels: 2, ",
                            "in_channels: 2, out_channels: 1, "}) {
    const auto model = dynunet(other + channels);
    std::map<std::string, at::Tensor> before;
    for (const auto& [name, tensor] : nn::state_of(*model)) before[name] = tensor.detach().clone();
    EXPECT_THROW(nn::load_weights(file, *model), DataError) << other;
    testing::internal::CaptureStderr();
    nn::load_weights(file, *model, nn::Fit::most);
    const std::string text = testing::internal::GetCapturedStderr();
    EXPECT_NE(text.find(" % of the model's weights are taken; others "), std::string::npos) << text;
    for (const auto& [name, tensor] : nn::state_of(*model)) {
      const bool fits = tensor.sizes() == expected.at(name).sizes();
      EXPECT_TRUE(at::equal(tensor, fits ? expected.at(name) : before.at(name))) << other << name;
    }
  }
  const auto wider = dynunet("out_channels: 2, filters: [8, 12, 16]"),
             volumes = dynunet("out_channels: 2, spatial_dims: 3, filters: [4, 6, 8]");
  for (const auto& model : {wider, volumes}) {
    for (const nn::Fit fit : {nn::Fit::most, nn::Fit::some})
      EXPECT_THROW(nn::load_weights(file, *model, fit), DataError);
  }
}

TEST(Weights, ATorchFileIsNoCheckpoint) {
  const std::string message =
      message_of<DataError>([] { nn::checkpoint_config(kFolder + "plain.pth"); });
  EXPECT_NE(message.find("checkpoint.config="), std::string::npos) << message;
}

}  // namespace
}  // namespace cytra
