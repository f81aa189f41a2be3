// Checkpoints that Cytra wrote earlier: tests/golden/make_checkpoints.sh.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "inference/models/trained_model.h"

namespace cytra::inference {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const std::string kOld = std::string(CYTRA_SOURCE_DIR) + "/tests/golden/checkpoints/";

/// What a model makes of a ramp: of each output its shape, and sums that tell it from another.
json outputs_of_old(const std::string& path) {
  CheckpointOptions options;
  options.ckpt_path = {path};
  const LoadedModel model = load_models(options).at(0);
  std::vector<int64_t> shape{1, model.in_channels};
  int64_t count = model.in_channels;
  for (const int64_t divisor : model.divisor) {
    shape.push_back(std::max<int64_t>(16, divisor));
    count *= shape.back();
  }
  const c10::InferenceMode inference_mode;
  json outputs = json::array();
  for (const at::Tensor& output : model.forward(at::linspace(-1, 1, count).reshape(shape))) {
    const at::Tensor values = output.to(at::kDouble).flatten();
    const at::Tensor ramp = at::linspace(0, 1, values.numel(), at::kDouble);
    outputs.push_back({{"shape", output.sizes().vec()},
                       {"sum", values.abs().sum().item<double>()},
                       {"weighted", (values * ramp).sum().item<double>()}});
  }
  return outputs;
}

TEST(OldCheckpoints, GiveWhatTheyGave) {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(kOld)) {
    if (entry.path().extension() == ".ckpt") names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  ASSERT_GE(names.size(), 6U);
  if (std::getenv("CYTRA_UPDATE_GOLDEN") != nullptr) {
    json all;
    for (const std::string& name : names) all[name] = outputs_of_old(kOld + name);
    write_file(kOld + "expected.json", all.dump(1) + "\n");
  }
  const json expected = json::parse(read_file(kOld + "expected.json"));
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    const json now = outputs_of_old(kOld + name);
    ASSERT_FALSE(now.empty());
    for (const json& output : now) EXPECT_TRUE(std::isfinite(output["sum"].get<double>()));
    ASSERT_TRUE(expected.contains(name));
    const json before = expected[name];
    ASSERT_GE(now.size(), before.size());
    for (std::size_t i = 0; i < before.size(); ++i) {
      EXPECT_EQ(now[i]["shape"], before[i]["shape"]);
      const double sum = before[i]["sum"].get<double>(), bound = 1e-4 * sum + 1e-6;
      EXPECT_NEAR(now[i]["sum"].get<double>(), sum, bound);
      EXPECT_NEAR(now[i]["weighted"].get<double>(), before[i]["weighted"].get<double>(), bound);
    }
  }
}

}  // namespace
}  // namespace cytra::inference
