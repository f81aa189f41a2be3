// Skipped, each by its name, where the module was not built.
#include "inference/engines/openvino.h"

#include <filesystem>
#include <fstream>
#include <thread>

#include <ATen/Parallel.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/shared_library.h"
#include "export/compile.h"
#include "tests/inference/small_model.h"
#include "tests/support/message_of.h"
#include "tests/support/tmp_dir.h"

namespace cytra {
namespace {

namespace fs = std::filesystem;
using test::SmallModel;

/// With a cache of its own.
class OpenVino : public testing::Test {
 protected:
  void SetUp() override {
    const std::string file = path_beside(&inference::engine_names, "libcytra_openvino.so");
    if (!fs::exists(file)) GTEST_SKIP() << "built without OpenVINO: no " << file;
    setenv("XDG_CACHE_HOME", cache_.path().c_str(), 1);
  }
  void TearDown() override { unsetenv("XDG_CACHE_HOME"); }
  std::vector<fs::path> kept() const {
    std::vector<fs::path> files;
    if (!fs::exists(cache_ / "cytra")) return files;
    for (const auto& entry : fs::directory_iterator(cache_ / "cytra")) files.push_back(entry);
    return files;
  }
  test::TmpDir cache_;
};

TEST_F(OpenVino, EqualsEagerInTwoAndThreeDimensions) {
  for (const char* text : test::kModels) {
    SmallModel small(text);
    const auto engine = inference::make_engine(
        small.engine_model(), test::options_of("openvino"), small.windows(3));
    EXPECT_EQ(engine->text().substr(0, 9), "OpenVINO ");
    EXPECT_NE(engine->text().find(", float32"), std::string::npos);
    small.passes = 0;
    for (const int64_t count : {3, 1, 2, 7}) {  // full, short and long batches
      const at::Tensor windows = small.windows(count);
      for (const at::Tensor& given : {windows,
                                      windows.contiguous(small.model->spatial_dims() == 2
                                                             ? at::MemoryFormat::ChannelsLast
                                                             : at::MemoryFormat::ChannelsLast3d)}) {
        const at::Tensor made = engine->run(given)[0];
        EXPECT_LT(test::max_difference(made, small.eager(windows)), 1e-4) << text << count;
      }
    }
    EXPECT_EQ(small.passes, 0);  // it did run there
  }
}

TEST_F(OpenVino, AutoTakesItOnACpu) {
  SmallModel small(test::kModels[0]);
  const auto engine =
      inference::make_engine(small.engine_model(), test::options_of("auto"), small.windows(1));
  EXPECT_EQ(engine->text().substr(0, 9), "OpenVINO ");
}

TEST_F(OpenVino, Bfloat16IsNearFloat32) {
  SmallModel small(test::kModels[0]);
  const at::Tensor windows = small.windows(2);
  try {
    const auto engine = inference::make_engine(
        small.engine_model(), test::options_of("openvino", "bf16-mixed"), windows);
    EXPECT_NE(engine->text().find("bfloat16"), std::string::npos);
    const double difference = test::max_difference(engine->run(windows)[0], small.eager(windows));
    EXPECT_LT(difference, 0.3);  // of values up to 6, with 8 bits of mantissa
    EXPECT_GT(difference, 1e-5);
  } catch (const ConfigError& error) {
    GTEST_SKIP() << error.what();  // a processor without bfloat16
  }
}

TEST_F(OpenVino, Int8IsNearFloat32AndSaysHowNear) {
#ifdef __x86_64__
  if (!__builtin_cpu_supports("avx512vnni") && !__builtin_cpu_supports("avxvnni"))
    GTEST_SKIP() << "sums of two products saturate here, so that models may be refused";
#endif
  SmallModel small(test::kModels[0]);
  const at::Tensor windows = small.windows(2);
  inference::EngineOptions options = test::options_of("auto");
  options.quantization = "int8";
  inference::EngineModel model = small.engine_model();
  model.calibration = {windows, small.windows(2)};
  testing::internal::CaptureStderr();
  const auto engine = inference::make_engine(model, options, windows);
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("int8 and float32; differs from eager float32 by"), std::string::npos) << log;
  const at::Tensor expected = small.eager(windows), off = engine->run(windows)[0] - expected;
  const double rms = off.square().mean().sqrt().item<double>();
  EXPECT_LT(rms, 0.2 * expected.square().mean().sqrt().item<double>());
  EXPECT_GT(rms, 1e-4);
}

TEST_F(OpenVino, Int8ThatLosesTooMuchIsRefused) {
  // One channel has all the range, the others all that the result is made of
  at::Tensor scale = at::full({8}, 0.01);
  scale[0] = 1000;
  const at::Tensor back = at::diag(1 / scale).view({8, 8, 1, 1});
  const at::Tensor last = at::eye(8).view({8, 8, 1, 1});
  const inference::EngineModel model{[=](const at::Tensor& x) {
    return std::vector<at::Tensor>{
        at::conv2d(at::relu(at::conv2d(x * scale.view({8, 1, 1}), back)), last)};
  }};
  inference::EngineOptions options = test::options_of("auto");
  const at::Tensor windows = at::randn({2, 8, 32, 32});
  EXPECT_EQ(inference::make_engine(model, options, windows)->text().substr(0, 8), "OpenVINO");
  options.quantization = "int8";
  const std::string message =
      message_of<ConfigError>([&] { inference::make_engine(model, options, windows); });
  EXPECT_NE(message.find("performance.quantization=int8: it differs from eager float32 by"),
            std::string::npos)
      << message;
}

TEST_F(OpenVino, SeveralOutputs) {
  inference::EngineModel model{[](const at::Tensor& x) {
    return std::vector<at::Tensor>{x * 2, at::max_pool2d(x, {2, 2}), x.sum(1, true)};
  }};
  const at::Tensor windows = at::randn({2, 3, 8, 8});
  const auto engine = inference::make_engine(model, test::options_of("openvino"), windows);
  const std::vector<at::Tensor> made = engine->run(windows), expected = model.forward(windows);
  ASSERT_EQ(made.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_LT(test::max_difference(made[i], expected[i]), 1e-5);
}

TEST_F(OpenVino, ThreadsMayShareIt) {
  SmallModel small(test::kModels[0]);
  const auto engine =
      inference::make_engine(small.engine_model(), test::options_of("openvino"), small.windows(2));
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      for (int pass = 0; pass < 5; ++pass) {
        const at::Tensor windows = small.windows(2);
        if (test::max_difference(engine->run(windows)[0], small.eager(windows)) > 1e-4) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(OpenVino, LargeWindowsAreInferredSideBySide) {
  const int before = at::get_num_threads();
  at::set_num_threads(2);
  SmallModel small(test::kModels[0]);
  const auto engine = inference::make_engine(
      small.engine_model(), test::options_of("openvino"), small.windows(3, 192));
  for (const int64_t count : {3, 1, 4}) {
    const at::Tensor windows = small.windows(count, 192);
    EXPECT_LT(test::max_difference(engine->run(windows)[0], small.eager(windows)), 1e-4) << count;
  }
  at::set_num_threads(before);
}

TEST_F(OpenVino, AnOperationThatItLacksIsNamed) {
  inference::EngineModel model{
      [](const at::Tensor& x) { return std::vector<at::Tensor>{at::special_entr(x.abs()) + x}; }};
  const at::Tensor windows = at::randn({1, 1, 8, 8});
  const std::string message = message_of<ConfigError>(
      [&] { inference::make_engine(model, test::options_of("openvino"), windows); });
  EXPECT_NE(message.find("OpenVINO has no aten::special_entr"), std::string::npos) << message;
  testing::internal::CaptureStderr();
  const auto engine = inference::make_engine(model, test::options_of("auto"), windows);
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("engine: not openvino: OpenVINO has no aten::special_entr"), std::string::npos)
      << log;
  EXPECT_EQ(engine->text(), "eager, float32");
}

TEST_F(OpenVino, ACompiledModelIsKeptForTheNextProcess) {
  SmallModel small(test::kModels[0]);
  inference::EngineModel model = small.engine_model();
  model.fingerprint = "weights 1";
  const at::Tensor windows = small.windows(2);
  const at::Tensor expected = small.eager(windows);
  const auto passes_of_making = [&] {
    small.passes = 0;
    const auto engine = inference::make_engine(model, test::options_of("openvino"), windows);
    const int passes = small.passes;
    EXPECT_LT(test::max_difference(engine->run(windows)[0], expected), 1e-4);
    return passes;
  };
  EXPECT_GT(passes_of_making(), 0);  // traced and compared
  ASSERT_EQ(kept().size(), 1U);
  EXPECT_EQ(passes_of_making(), 0);  // neither

  const std::string file = kept().at(0).string(), whole = read_file(file);
  for (const std::size_t at : {std::size_t{3}, whole.size() / 2, whole.size() - 1}) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    std::ofstream(file, std::ios::binary) << damaged;
    EXPECT_GT(passes_of_making(), 0) << at;
    EXPECT_EQ(passes_of_making(), 0) << at;
  }
  std::ofstream(file, std::ios::binary) << whole.substr(0, 100);
  EXPECT_GT(passes_of_making(), 0);

  model.fingerprint = "weights 2";
  EXPECT_GT(passes_of_making(), 0);
  EXPECT_EQ(kept().size(), 2U);
  model.fingerprint = "";
  EXPECT_GT(passes_of_making(), 0);
  EXPECT_EQ(kept().size(), 2U);
}

TEST_F(OpenVino, WhatOthersMayHaveWrittenIsNotTaken) {
  SmallModel small(test::kModels[0]);
  inference::EngineModel model = small.engine_model();
  model.fingerprint = "weights 1";
  const at::Tensor windows = small.windows(2);
  const auto passes_of_making = [&] {
    small.passes = 0;
    inference::make_engine(model, test::options_of("openvino"), windows);
    return small.passes.load();
  };
  EXPECT_GT(passes_of_making(), 0);
  ASSERT_EQ(kept().size(), 1U);
  const fs::path file = kept().at(0);
  EXPECT_EQ(passes_of_making(), 0);
  for (const fs::perms more : {fs::perms::group_write, fs::perms::others_write}) {
    fs::permissions(file, more, fs::perm_options::add);
    EXPECT_GT(passes_of_making(), 0);  // and kept anew, of this user alone
    EXPECT_EQ(passes_of_making(), 0);
  }
  const fs::path elsewhere = cache_ / "elsewhere";
  fs::rename(file, elsewhere);
  fs::create_symlink(elsewhere, file);
  EXPECT_GT(passes_of_making(), 0);
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(file.c_str(), 12345, 12345), 0);
    EXPECT_GT(passes_of_making(), 0);
  }
  fs::remove(file);
  // Under this name, the model of other weights
  model.fingerprint = "weights 2";
  EXPECT_GT(passes_of_making(), 0);
  for (const fs::path& other : kept()) {
    if (other != file) fs::copy_file(other, file, fs::copy_options::overwrite_existing);
  }
  model.fingerprint = "weights 1";
  EXPECT_GT(passes_of_making(), 0);
}

TEST_F(OpenVino, OnlyKeptModelsMakeRoomForNewOnes) {
  fs::create_directories(cache_ / "cytra");
  const auto sparse = [&](const std::string& name, const std::string& begin) {
    std::ofstream(cache_ / ("cytra/" + name), std::ios::binary) << begin;
    fs::resize_file(cache_ / ("cytra/" + name), std::uintmax_t{3} << 30);
  };
  const std::string digits = "0123456789abcdef0123456789abcdef.openvino",
                    old = "f" + digits.substr(1);
  sparse("mine.openvino", "cytra-openvino 1 ");
  sparse(digits, "my own file");
  sparse(old, "cytra-openvino 1 ");
  SmallModel small(test::kModels[0]);
  inference::EngineModel model = small.engine_model();
  model.fingerprint = "weights 1";
  inference::make_engine(model, test::options_of("openvino"), small.windows(2));
  EXPECT_TRUE(fs::exists(cache_ / "cytra/mine.openvino"));
  EXPECT_TRUE(fs::exists(cache_ / ("cytra/" + digits)));
  EXPECT_FALSE(fs::exists(cache_ / ("cytra/" + old)));
}

TEST_F(OpenVino, ACacheThatCannotBeWrittenCostsNothingElse) {
  setenv("XDG_CACHE_HOME", "/proc/none", 1);
  SmallModel small(test::kModels[0]);
  inference::EngineModel model = small.engine_model();
  model.fingerprint = "weights";
  const at::Tensor windows = small.windows(2);
  const auto engine = inference::make_engine(model, test::options_of("openvino"), windows);
  EXPECT_LT(test::max_difference(engine->run(windows)[0], small.eager(windows)), 1e-4);
}

TEST_F(OpenVino, TakesATorchScriptFileAsItIs) {
  for (const std::string name : {"traced", "frozen"}) {
    const std::string file = std::string(CYTRA_SOURCE_DIR) + "/tests/golden/models/" + name + ".pt";
    const exporting::Forward script = exporting::from_torchscript(read_file(file));
    inference::EngineModel model{script};
    model.torchscript = [&] { return read_file(file); };
    const at::Tensor windows = at::randn({2, 2, 20, 16});
    const auto engine = inference::make_engine(model, test::options_of("openvino"), windows);
    EXPECT_LT(test::max_difference(engine->run(windows)[0], script(windows)[0]), 1e-4) << name;
  }
}

TEST_F(OpenVino, ExportsItsOwnFormat) {
  SmallModel small(test::kModels[1]);
  const at::NoGradGuard no_grad;
  const std::string archive = exporting::to_torchscript(
      [&](const at::Tensor& x) { return std::vector<at::Tensor>{small.model->forward(x)}; },
      small.windows(1, 16),
      {});
  const test::TmpDir folder;
  inference::export_openvino(archive, {-1, 1, -1, -1, -1}, "a: 1\nb: \"<&\"", folder / "model");
  EXPECT_NE(read_file(folder / "model.xml").find("<net name="), std::string::npos);
  EXPECT_GT(fs::file_size(folder / "model.bin"), 1000U);
  const inference::OnnxFacts facts = inference::describe_onnx(
      read_file(folder / "model.xml") + '\0' + read_file(folder / "model.bin"), "", std::nullopt);
  EXPECT_EQ(facts.shape, (std::vector<int64_t>{-1, 1, -1, -1, -1}));
  EXPECT_EQ(facts.config, "a: 1\nb: \"<&\"");
}

}  // namespace
}  // namespace cytra
