#include "inference/isolated.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/api/module.h>

#include "inference/engines/engine.h"
#include "inference/predictor/averages.h"
#include "tests/inference/small_model.h"
#include "tests/support/tmp_dir.h"

namespace cytra::inference {
namespace {

// Networks of others: each result is that of `prepared`, whatever else they do to memory.
at::Tensor prepared(const at::Tensor& x) {
  return (x - 1) / 0.5;
}
std::vector<std::pair<std::string, Forward>> careless_networks() {
  const auto kept = std::make_shared<at::Tensor>();
  return {{"changes its input",
           [](const at::Tensor& x) { return std::vector<at::Tensor>{x.sub_(1).div_(0.5) * 1}; }},
          {"returns its input",
           [](const at::Tensor& x) { return std::vector<at::Tensor>{x.sub_(1).div_(0.5)}; }},
          {"returns a view of it",
           [](const at::Tensor& x) {
             return std::vector<at::Tensor>{x.sub_(1).div_(0.5).flip(2).flip(2)};
           }},
          {"writes its output again",
           [kept](const at::Tensor& x) {
             if (!kept->defined() || kept->sizes() != x.sizes()) *kept = at::empty_like(x);
             kept->copy_(prepared(x));
             return std::vector<at::Tensor>{*kept};
           }},
          {"two heads of one tensor", [](const at::Tensor& x) {
             const at::Tensor y = x.sub_(1).div_(0.5);
             return std::vector<at::Tensor>{y, y};
           }}};
}

TEST(Isolated, EveryEngineGivesEachWindowItsOwnResult) {
  const at::Tensor windows = at::randn({5, 1, 192, 192}), same = windows.clone();
  for (const auto& [name, network] : careless_networks()) {
    for (const char* backend : {"auto", "eager", "torchscript"}) {
      if (name == "writes its output again" && std::string(backend) != "eager")
        continue;  // no trace
      SCOPED_TRACE(name + ' ' + backend);
      const auto engine = make_engine({network}, test::options_of(backend), windows);
      std::vector<at::Tensor> before;
      for (int pass = 0; pass < 3; ++pass) {
        before.push_back(engine->run(windows)[0]);
        engine->run(windows * 2);
        EXPECT_TRUE(windows.equal(same));
      }
      for (const at::Tensor& result : before)
        EXPECT_LT(test::max_difference(result, prepared(same)), 1e-5);
    }
  }
}

TEST(Isolated, SeveralPassesOverTheSameWindows) {
  const at::Tensor windows = at::randn({2, 1, 16, 16});
  for (const auto& [name, network] : careless_networks()) {
    SCOPED_TRACE(name);
    const TtaOptions turns{{0, 1}, true};
    for (const Forward& forward : {averaged({network}, turns, {1, 1}, false),
                                   averaged({network, network}, {}, {1, 1}, false),
                                   mean_of({network, network, network})})
      EXPECT_LT(test::max_difference(forward(windows)[0], prepared(windows)), 1e-5);
  }
}

TEST(Isolated, FilesOfTorchScriptToo) {
  const test::TmpDir dir;
  torch::jit::Module script("Net");
  script.register_parameter("w", at::full({2, 1, 1, 1}, 3.0), false);
  script.define(R"(
    def forward(self, x: Tensor) -> Tensor:
        x -= 1.0
        x /= 0.5
        return torch.conv2d(x, self.w)
)");
  script.save(dir / "net.pt");
  const auto models = load_models({{dir / "net.pt", dir / "net.pt"}, {}});
  const at::Tensor windows = at::randn({3, 1, 32, 32}), expected = prepared(windows) * 3;
  const c10::InferenceMode inference_mode;
  for (const Forward& forward : {models[0].forward, mean_of(models).forward}) {
    for (int pass = 0; pass < 3; ++pass)
      EXPECT_LT(test::max_difference(forward(windows)[0].narrow(1, 0, 1), expected), 1e-5);
  }
}

}  // namespace
}  // namespace cytra::inference
