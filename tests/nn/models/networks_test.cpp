// Every network with golden values of a peer: names and shapes of its weights, outputs, gradients.
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "config/registry.h"
#include "device/convolution.h"
#include "nn/detection_model.h"
#include "nn/model.h"
#include "nn/summary.h"
#include "tests/support/network_golden.h"

namespace cytra {
namespace {

constexpr double kTolerance = 1e-4;  // of the largest value
constexpr double kNoise = 1e-5;  // of the largest gradient: a bias before a norm has none but this
constexpr uint64_t kImage = 1'000'003, kOutput = 2'000'003;

class Networks : public ::testing::TestWithParam<std::string> {
 protected:
  Networks() : golden(test::network_case(GetParam()).node) {
    model = make<nn::Model>(golden.at("model"));
    model->train(golden.get<std::string>("mode") == "train");
    image = test::pattern(golden.get<std::vector<int64_t>>("image"), kImage).to(at::kFloat);
    at::manual_seed(0);  // of random masks
  }
  ~Networks() override { device::set_conv_algorithm(device::ConvAlgorithm::automatic); }
  void expect_outputs_and_gradients();
  void expect_equal(const at::Tensor& output, const config::Node& expected) const {
    ASSERT_EQ(output.sizes().vec(), expected.get<std::vector<int64_t>>("shape"));
    const auto values = expected.get<std::vector<double>>("values");
    const at::Tensor flat = output.detach().contiguous().flatten().to(at::kDouble);
    const int64_t step = std::max<int64_t>(1, flat.numel() / 64);
    const double largest = expected.get<double>("largest");
    for (std::size_t i = 0; i < values.size(); ++i) {
      ASSERT_NEAR(
          flat[static_cast<int64_t>(i) * step].item<double>(), values[i], kTolerance * largest)
          << "value " << i;
    }
  }
  /// Their sum, each times its number of pattern(seed 0).
  static double weighted_sum(const at::Tensor& gradient) {
    static at::Tensor numbers = test::pattern({0}, 0);
    if (numbers.numel() < gradient.numel()) numbers = test::pattern({gradient.numel()}, 0);
    return at::dot(gradient.flatten(), numbers.narrow(0, 0, gradient.numel())).item<double>();
  }
  /// A line for each gradient that is not the peer's; puts what the model gives into `outputs`.
  std::string other_gradients(at::Tensor input, std::vector<at::Tensor>& outputs) const {
    at::manual_seed(0);  // of random masks
    input = input.detach().requires_grad_();
    for (at::Tensor& parameter : model->parameters()) parameter.mutable_grad() = at::Tensor();
    outputs = model->all(input);
    at::Tensor loss = at::zeros({}, at::kDouble);
    for (std::size_t o = 0; o < outputs.size(); ++o)
      loss = loss +
             (outputs[o].to(at::kDouble) * test::pattern(outputs[o].sizes(), kOutput + o)).sum();
    loss.backward();
    std::map<std::string, at::Tensor> gradients{{"", input.grad()}};
    for (const auto& entry : model->named_parameters())
      gradients[entry.key()] = entry.value().grad();
    double largest = 0;
    for (const auto& [name, numbers] : golden.at("gradients").map)
      largest = std::max(largest, numbers.list[0].as<double>());
    std::string others;
    for (const auto& [name, numbers] : golden.at("gradients").map) {
      const double norm = numbers.list[0].as<double>(), sum = numbers.list[1].as<double>();
      if (!gradients[name].defined()) {
        others += name + ": none\n";
        continue;
      }
      const at::Tensor gradient = gradients[name].to(at::kDouble);
      const double own_norm = gradient.norm().item<double>();
      const double own_sum = weighted_sum(gradient);
      const double most = kTolerance * norm + kNoise * largest;
      if (std::abs(own_norm - norm) <= most && std::abs(own_sum - sum) <= most) continue;
      others += fmt::format("{}: norm {}, expected {}; sum {}, expected {}; within {}\n",
                            name,
                            own_norm,
                            norm,
                            own_sum,
                            sum,
                            most);
    }
    return others;
  }
  config::Node golden;
  std::shared_ptr<nn::Model> model;
  at::Tensor image;
};

TEST_P(Networks, HaveThePeersWeights) {
  std::map<std::string, std::vector<int64_t>> expected, found;
  for (const config::Node& entry : golden.at("parameters").list)
    expected[entry.list[0].string] = entry.list[1].as<std::vector<int64_t>>();
  for (const auto& [name, tensor] : nn::state_of(*model)) found[name] = tensor.sizes().vec();
  EXPECT_EQ(found, expected);
}

TEST_P(Networks, OutputsAndGradientsEqualThePeers) {
  device::set_conv_algorithm(device::ConvAlgorithm::direct);
  expect_outputs_and_gradients();
  device::set_conv_algorithm(device::ConvAlgorithm::winograd);  // wherever it can be
  expect_outputs_and_gradients();
}

void Networks::expect_outputs_and_gradients() {
  test::fill(nn::state_of(*model));
  const auto& expected = golden.at("outputs").list;
  // Where a value lies within rounding of a leaky ReLU's kink, processors take either of its two
  // slopes; images that differ by a rounding find the peer's.
  std::string others;
  for (int i = 0; i < 24; ++i) {
    const double change = 1e-7 * ((i + 1) / 2) * (i % 2 == 0 ? 1 : -1);
    std::vector<at::Tensor> outputs;
    others = other_gradients(image * (1 + change), outputs);
    ASSERT_EQ(outputs.size(), expected.size());
    for (std::size_t o = 0; i == 0 && o < outputs.size(); ++o)
      expect_equal(outputs[o], expected[o]);
    if (others.empty()) break;
  }
  EXPECT_EQ(others, "");
}

TEST_P(Networks, ChannelsLastAndCheckpointingChangeNothing) {
  test::fill(nn::state_of(*model));
  model->settings.channels_last = true;
  model->settings.gradient_checkpointing = true;
  nn::place(*model, at::kCPU);
  const std::vector<at::Tensor> outputs = model->all(image);
  const auto& expected = golden.at("outputs").list;
  for (std::size_t o = 0; o < outputs.size(); ++o) expect_equal(outputs[o], expected[o]);
  outputs.front().sum().backward();
}

TEST_P(Networks, TakeMultiplesOfTheirDivisorAndTellOfEveryConvolution) {
  if (!model->fixed_size().empty()) return;  // there are no multiples
  std::vector<int64_t> sides = model->divisor();
  for (int64_t& side : sides) side *= 2;  // norms refuse a deepest level of one voxel
  std::vector<int64_t> shape{1, model->in_channels()};
  shape.insert(shape.end(), sides.begin(), sides.end());
  for (const nn::SummaryRow& row : nn::summarize(*model, shape, -1).rows) {
    EXPECT_TRUE(row.type != "Conv" || !row.out.empty()) << row.name << " did not run";
    if (row.depth > 0) continue;
    std::vector<int64_t> expected{1, model->out_channels()};
    const auto* const finds = dynamic_cast<const nn::DetectionModel*>(model.get());
    for (const int64_t side : sides)
      expected.push_back(finds == nullptr ? side : side / 4);  // a detector's finest level
    EXPECT_EQ(row.out, expected);
  }
  if (sides.back() == 2) return;
  shape.back() += 1;
  EXPECT_THROW((*model)(at::zeros(shape)), DataError);
}

INSTANTIATE_TEST_SUITE_P(Peers,
                         Networks,
                         ::testing::ValuesIn(test::network_names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace cytra
