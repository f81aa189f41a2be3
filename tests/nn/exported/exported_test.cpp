// Networks that PyTorch's torch.export saved, beside PyTorch: outputs, gradients, buffers and
// losses. tests/golden/make_exported.py wrote the small ones; CYTRA_EXPORTED names a folder of
// more.
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <torch/optim/sgd.h>

#include "base/error.h"
#include "config/registry.h"
#include "device/convolution.h"
#include "io/safetensors.h"
#include "nn/model.h"
#include "nn/weights.h"
#include "ops/conv/constant_weights.h"
#include "tests/support/golden.h"
#include "tests/support/message_of.h"
#include "tests/support/tmp_dir.h"

namespace cytra {
namespace {

struct ExportedCase {
  explicit ExportedCase(const std::string& stem) : file(stem + ".safetensors") {
    node.set("_target_", config::Node::make_string("ExportedProgram"));
    node.set("file", config::Node::make_string(stem + ".pt2"));
    node.set("deep_supervision", config::Node::make_boolean(true));  // all results in training
    for (const auto& [name, view] : file.tensors()) tensors[name] = nn::tensor_of(view, name);
    node.set("in_channels", config::Node::make_integer(tensors.at("image").size(1)));
    model = make<nn::Model>(node);
  }
  std::vector<at::Tensor> list(const std::string& name) const {
    std::vector<at::Tensor> found;
    for (int64_t i = 0; tensors.count(fmt::format("{}.{}", name, i)) > 0; ++i)
      found.push_back(tensors.at(fmt::format("{}.{}", name, i)));
    return found;
  }
  config::Node node = config::Node::make_map();
  io::SafetensorsFile file;
  std::map<std::string, at::Tensor> tensors;
  std::shared_ptr<nn::Model> model;
};

double difference(const at::Tensor& a, const at::Tensor& b) {
  const double most = a.sizes() == b.sizes() ? (a - b).abs().max().item<double>() : INFINITY;
  return std::isnan(most) ? INFINITY : most;
}

class Exported : public ::testing::TestWithParam<std::string> {
 protected:
  /// What tests/golden/check_exported.py prints.
  static void record(const std::string& name, double error) {
    RecordProperty(name, fmt::format("{:.1e}", error));
  }
  ExportedCase it{GetParam()};
};
class ExportedByParts : public Exported {};

TEST_P(Exported, OutputsEqualPyTorchs) {
  const at::NoGradGuard no_grad;
  const auto expected = it.list("output");
  ASSERT_FALSE(expected.empty());
  double error = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    it.node.set("output", config::Node::make_string(std::to_string(i)));
    const auto model = make<nn::Model>(it.node);
    model->eval();
    const auto outputs = model->all(it.tensors.at("image"));
    ASSERT_EQ(outputs.size(), 1U);
    const double scale = std::max(1.0, expected[i].abs().max().item<double>());
    error = std::max(error, difference(outputs[0], expected[i]) / scale);
  }
  record("outputs", error);
  EXPECT_LE(error, 1e-5);
}

/// As predict runs it: in inference mode, with weights that are prepared once, several images.
TEST_P(Exported, ItsOutputsAreThoseOfOneImageInEachRun) {
  device::set_conv_algorithm(device::ConvAlgorithm::winograd);
  const c10::InferenceMode inference_mode;
  it.model->eval();
  ops::ConstantWeights weights;
  std::vector<at::Tensor> expected;
  for (int run = 0; run < 3; ++run) {
    for (int i = 0; i < 10; ++i) {
      const at::Tensor image = it.tensors.at("image") * (1 - 0.1 * i);
      const ops::ConstantWeights::Scope scope(weights);
      const at::Tensor output = it.model->all(image)[0];
      if (run == 0) {
        ops::ConstantWeights others;
        const ops::ConstantWeights::Scope in_others(others);
        expected.push_back(it.model->all(image)[0]);
      }
      EXPECT_TRUE(output.equal(expected[static_cast<std::size_t>(i)])) << run << " " << i;
    }
  }
  const at::Tensor output = it.list("output").at(0);
  EXPECT_LE(difference(expected[0], output),
            2e-4 * std::max(1.0, output.abs().max().item<double>()));
  device::set_conv_algorithm(device::ConvAlgorithm::automatic);
}

TEST_P(Exported, GradientsEqualPyTorchs) {
  it.model->train();
  const auto factors = it.list("factor"), expected = it.list("train_output");
  const auto outputs = it.model->all(it.tensors.at("image"));
  at::Tensor loss = at::zeros({});
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    EXPECT_LE(difference(outputs[i].detach(), expected[i]),
              2e-5 * std::max(1.0, expected[i].abs().max().item<double>()));
    loss = loss + (outputs[i] * factors[i]).mean();
  }
  loss.backward();
  double largest = 0;
  for (const auto& [name, tensor] : it.tensors)
    if (name.rfind("gradient.", 0) == 0)
      largest = std::max(largest, tensor.abs().max().item<double>());
  double error = 0;
  for (const auto& parameter : it.model->named_parameters()) {
    const auto found = it.tensors.find("gradient." + parameter.key());
    ASSERT_NE(found, it.tensors.end()) << parameter.key();
    const at::Tensor gradient = parameter.value().grad().defined()
                                    ? parameter.value().grad()
                                    : at::zeros_like(parameter.value());
    const double scale = found->second.abs().max().item<double>();
    const double own = difference(gradient, found->second) / (scale + 0.2 * largest);
    EXPECT_LE(own, 1e-4) << parameter.key();
    error = std::max(error, own);
  }
  record("gradients", error);
  EXPECT_GT(largest, 0);
}

TEST_P(ExportedByParts, GivesTheSameGradientsWhenItComputesActivationsAgain) {
  std::vector<std::pair<at::Tensor, at::Tensor>> buffers;
  for (const at::Tensor& buffer : it.model->buffers()) buffers.emplace_back(buffer, buffer.clone());
  const auto gradients = [&](bool recomputes) {
    it.model->settings.gradient_checkpointing = recomputes;
    it.model->train();
    it.model->zero_grad();
    for (const auto& [buffer, values] : buffers) buffer.copy_(values);
    at::manual_seed(1);
    at::Tensor loss = at::zeros({});
    for (const at::Tensor& output : it.model->all(it.tensors.at("image")))
      loss = loss + output.square().mean();
    loss.backward();
    std::vector<at::Tensor> all;
    for (const at::Tensor& parameter : it.model->parameters())
      all.push_back(parameter.grad().defined() ? parameter.grad().clone() : at::Tensor());
    return all;
  };
  const auto kept = gradients(false), again = gradients(true);
  for (std::size_t i = 0; i < kept.size(); ++i) {
    ASSERT_EQ(kept[i].defined(), again[i].defined());
    if (kept[i].defined()) {
      EXPECT_TRUE(kept[i].equal(again[i])) << i;
    }
  }
}

TEST_P(Exported, TrainsAsPyTorchDoes) {
  it.model->train();
  const auto found_rate = it.tensors.find("rate");
  const double rate = found_rate == it.tensors.end() ? 1e-2 : found_rate->second.item<double>();
  torch::optim::SGD optimizer(it.model->parameters(), torch::optim::SGDOptions(rate).momentum(0.9));
  const at::Tensor curve = it.tensors.at("curve"), batches = it.tensors.at("batches");
  const auto goals = it.list("goal");
  double error = 0, buffer_error = 0;
  for (int64_t step = 0; step < curve.numel(); ++step) {
    optimizer.zero_grad();
    const auto outputs = it.model->all(batches[step % 4]);
    at::Tensor loss = at::zeros({});
    for (std::size_t i = 0; i < outputs.size(); ++i)
      loss = loss + (outputs[i] - goals[i]).square().mean();
    loss.backward();
    optimizer.step();
    const double off = std::abs(loss.item<double>() - curve[step].item<double>());
    error = std::max(error, off / curve[0].item<double>());
    EXPECT_LE(off, 1e-3 * curve[0].item<double>()) << "step " << step;
    if (step != 9) continue;
    for (const auto& buffer : it.model->named_buffers()) {
      const auto found = it.tensors.find("buffer." + buffer.key());
      if (found == it.tensors.end()) continue;  // the graph's
      const at::Tensor own = buffer.value().to(at::kDouble), other = found->second.to(at::kDouble);
      const double apart = difference(own, other) / std::max(1.0, other.abs().max().item<double>());
      EXPECT_LE(apart, 1e-4) << buffer.key();
      buffer_error = std::max(buffer_error, apart);
    }
  }
  record("buffers", buffer_error);
  record("curve", error);
}

TEST(ExportedModel, IsWholeInACheckpoint) {
  const test::TmpDir tmp;
  const ExportedCase it(test::golden_folder() + "/exported/residual");  // it has constants
  std::map<std::string, at::Tensor> kept;
  io::TensorViews views;
  for (const auto& [name, tensor] : nn::state_of(*it.model))
    kept["model." + name] = tensor.detach().contiguous().clone();
  for (const auto& [name, tensor] : kept) views[name] = nn::view_of(tensor);
  io::write_safetensors(tmp / "last.ckpt", views, {});
  config::Node node = it.node;
  node.set("file", config::Node::make_string(tmp / "last.ckpt"));
  const auto model = make<nn::Model>(node);
  model->eval();
  it.model->eval();
  const at::NoGradGuard no_grad;
  EXPECT_TRUE(
      model->all(it.tensors.at("image"))[0].equal(it.model->all(it.tensors.at("image"))[0]));
  EXPECT_EQ(model->parameters().size(), it.model->parameters().size());
}

/// The results of a network of several heads train as PyTorch trains them, in the order of heads.
/// Graphs that tell no condition: tests/golden/make_exported_sides.py.
/// torch.export's conditions of its attention exclude a batch of 1.
TEST(ExportedModel, TrainsByBatchesOfOne) {
  ExportedCase it(test::golden_folder() + "/exported/attention");
  const at::Tensor images = it.tensors.at("image"), factors = it.list("factor").at(0);
  const int64_t count = images.size(0);
  for (int64_t i = 0; i < count; ++i) {
    it.model->eval();
    const at::Tensor output = it.model->all(images.narrow(0, i, 1))[0];
    EXPECT_LE(difference(output, it.list("output").at(0).narrow(0, i, 1)), 1e-5);
    it.model->train();
    const at::Tensor result = it.model->all(images.narrow(0, i, 1))[0];
    ASSERT_EQ(result.size(0), 1);
    ((result * factors.narrow(0, i, 1)).mean() / static_cast<double>(count)).backward();
  }
  for (const auto& parameter : it.model->named_parameters()) {
    const at::Tensor expected = it.tensors.at("gradient." + parameter.key());
    EXPECT_LE(difference(parameter.value().grad(), expected),
              1e-4 * expected.abs().max().item<double>() + 1e-6)
        << parameter.key();
  }
}

TEST(ExportedModel, FindsTheDivisorThatItsConditionsDoNotTell) {
  for (const auto& entry :
       std::filesystem::directory_iterator(test::golden_folder() + "/exported/sides")) {
    const std::string name = entry.path().stem().string();
    const int64_t divisor = std::stoll(name.substr(name.find('_') + 1));
    config::Node node = config::Node::make_map();
    node.set("_target_", config::Node::make_string("ExportedProgram"));
    node.set("file", config::Node::make_string(entry.path().string()));
    const auto model = make<nn::Model>(node);
    EXPECT_EQ(model->divisor(), std::vector<int64_t>(2, divisor)) << name;
    EXPECT_TRUE(model->is_training()) << name;
  }
}

TEST(ExportedModel, ItsResultsAreHeads) {
  ExportedCase it(test::golden_folder() + "/exported/dict");
  it.node.set("deep_supervision", config::Node::make_boolean(false));
  it.node.set("heads",
              config::parse_value("{edge: {out_channels: 3}, mask: {out_channels: 2}}", {}));
  const auto model = make<nn::Model>(it.node);
  EXPECT_EQ(model->output_names(), (std::vector<std::string>{"edge", "mask"}));
  EXPECT_EQ(model->out_channels(), 3);
  model->train();
  torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(1e-2).momentum(0.9));
  const at::Tensor curve = it.tensors.at("curve"), batches = it.tensors.at("batches");
  for (int64_t step = 0; step < curve.numel(); ++step) {
    optimizer.zero_grad();
    const auto outputs = model->all(batches[step % 4]);
    ASSERT_EQ(outputs.size(), 2U);
    const at::Tensor loss = (outputs[0] - it.tensors.at("goal.1")).square().mean() +
                            (outputs[1] - it.tensors.at("goal.0")).square().mean();
    loss.backward();
    optimizer.step();
    ASSERT_NEAR(loss.item<double>(), curve[step].item<double>(), 1e-3 * curve[0].item<double>())
        << "step " << step;
  }
  const auto mistake = [&](const std::string& heads) {
    it.node.set("heads", config::parse_value(heads, {}));
    return message_of<ConfigError>([&] { make<nn::Model>(it.node); });
  };
  EXPECT_NE(
      mistake("{edgy: {out_channels: 3}}").find("no result 'edgy', expected one of mask, edge"),
      std::string::npos);
  EXPECT_NE(mistake("{edge: {out_channels: 2}}").find("model.heads.edge.out_channels: 2"),
            std::string::npos);
  EXPECT_NE(mistake("{edge: {}}").find("out_channels"), std::string::npos);
}

TEST(ExportedModel, AUsersMistakeNamesTheChoice) {
  ExportedCase it(test::golden_folder() + "/exported/dict");
  it.node.set("output", config::Node::make_string("edgy"));
  const std::string message = message_of<ConfigError>([&] { make<nn::Model>(it.node); });
  EXPECT_NE(message.find("has no result 'edgy', expected one of mask, edge"), std::string::npos)
      << message;
  it.node.set("output", config::Node::make_string("edge"));
  it.node.set("out_channels", config::Node::make_integer(2));
  EXPECT_NE(message_of<ConfigError>([&] {
              make<nn::Model>(it.node);
            }).find("dict.pt2 has 3; set it to 3"),
            std::string::npos);
}

std::vector<std::string> exported_cases() {
  std::vector<std::string> stems;
  const char* more = std::getenv("CYTRA_EXPORTED");
  for (const std::string& folder :
       {test::golden_folder() + "/exported", std::string(more == nullptr ? "" : more)}) {
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(folder, ignored))
      if (entry.path().extension() == ".pt2")
        stems.push_back(std::filesystem::path(entry.path()).replace_extension("").string());
  }
  std::sort(stems.begin(), stems.end());
  return stems;
}

std::string name_of_case(const ::testing::TestParamInfo<std::string>& info) {
  const std::filesystem::path path(info.param);
  std::string name = path.parent_path().filename().string() + "_" + path.filename().string();
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, Exported, ::testing::ValuesIn(exported_cases()), name_of_case);
INSTANTIATE_TEST_SUITE_P(All, ExportedByParts, ::testing::ValuesIn(exported_cases()), name_of_case);

}  // namespace
}  // namespace cytra
