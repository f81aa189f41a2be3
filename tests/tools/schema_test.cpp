// What the engine says about every program's configuration, and that editors can use it.
#include "config/schema.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include "base/error.h"
#include "base/version.h"
#include "cli/program.h"
#include "config/composer.h"
#include "tests/support/program.h"

namespace cytra {
namespace {
namespace fs = std::filesystem;

/// A function of the engine, which is loaded with all its components.
void* engine_function(const char* name) {
  static void* const engine = [] {
    Dl_info own{};
    dladdr(reinterpret_cast<void*>(&version), &own);
    const fs::path path = fs::path(own.dli_fname).parent_path() / "libcytra.so";
    return dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  }();
  return engine == nullptr ? nullptr : dlsym(engine, name);
}

std::string describe(const std::string& program, const std::string& what, bool schema = false) {
  const auto call =
      reinterpret_cast<int (*)(cli::DescribeRequest&)>(engine_function("cytra_describe"));
  if (call == nullptr) throw std::runtime_error("no engine");
  cli::DescribeRequest request{program, what, schema, false, ""};
  call(request);
  return request.text;
}

std::string error_of(const std::string& program, const std::string& what, bool schema = false) {
  try {
    describe(program, what, schema);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

void expect_has(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << part << " is not in: " << text.substr(0, 2000);
}

TEST(Describe, ProgramsSectionsAndComponents) {
  expect_has(describe("train", ""), "optimizer");
  expect_has(describe("train", "trainer"), "gradient_clip_val");
  expect_has(describe("train", "DynUNet"), "channels_last");
  expect_has(describe("train", "torch.optim.AdamW"), "weight_decay");
  expect_has(describe("train", "task.loss"), "DiceCELoss");
  expect_has(describe("train", "optimizer"), "SGD");
  expect_has(describe("train", "optimizer.lr"), "Adam, AdamW");
  expect_has(describe("train", "data.transforms.train.0.prob"), "RandFlipd");
  expect_has(describe("train", "callbacks.mine.patience"), "EarlyStopping");
  expect_has(describe("predict", "inference_args"), "sw_batch_size");
  expect_has(describe("benchmark_performance", "repeats"), "timed runs");
  expect_has(error_of("train", "DynUnet"), "'DynUNet'");
  expect_has(error_of("train", "trainer.max_epoch"), "nothing to describe");
  expect_has(error_of("trian", ""), "'train'");
  expect_has(error_of("train", "modle", true), "'model'");
  expect_has(error_of("train", std::string(1000000, '.')), "nothing to describe");
}

TEST(Schema, FitsTheConfigs) {
  const test::TmpDir dir;
  const auto write = [&](const std::string& program, const std::string& group) {
    std::ofstream(dir / (program + (group.empty() ? "" : "." + group) + ".json"))
        << describe(program, group, true);
  };
  write("optimize", "");  // has no primary config of its own
  for (const auto& entry : fs::directory_iterator(CYTRA_SOURCE_DIR "/configs")) {
    if (entry.is_directory()) {
      write("train", entry.path().filename());
    } else {
      write(entry.path().stem(), "");
    }
  }
  for (const char* group : {"experiment", "predict"}) write("predict", group);
  const test::Outcome outcome =
      test::shell("python3 '" CYTRA_SOURCE_DIR "/tests/tools/check_schema.py' '" + dir.path() +
                  "' '" CYTRA_SOURCE_DIR "/configs'");
  if (outcome.code == 77)
    GTEST_SKIP() << "install python3-jsonschema and python3-yaml: " << outcome.out;
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
}

TEST(Schema, EveryDefaultIsAllowedAndExplained) {
  ASSERT_NE(engine_function("cytra_train"), nullptr);
  int count = 0;
  for (const auto& [kind, components] : config::component_kinds()) {
    for (const auto& [name, type] : components.types) {
      for (const config::OptionInfo& option : type.describe()) {
        SCOPED_TRACE(name + "." + option.name);
        ++count;
        EXPECT_FALSE(option.doc.empty());
        const config::Node& value = option.value;
        if (!option.choices.empty()) {
          EXPECT_EQ(std::count(option.choices.begin(), option.choices.end(), value.string), 1);
        }
        if (!option.low || value.is_null()) continue;
        std::vector<config::Node> numbers{value};
        if (value.kind == config::Kind::list) numbers = value.list;
        for (const config::Node& number : numbers) {
          EXPECT_GE(number.as<double>(), *option.low);
          EXPECT_LE(number.as<double>(), *option.high);
        }
      }
    }
  }
  EXPECT_GT(count, 100);
}

TEST(Check, TellsAllAndMakesNothing) {
  const auto train = reinterpret_cast<int (*)(const cli::Run&)>(engine_function("cytra_train"));
  ASSERT_NE(train, nullptr);
  const test::TmpDir dir;
  cli::Run run;
  run.check = true;
  run.variables = {"source_col",
                   "target_col",
                   "spatial_dims",
                   "raw_im_channels",
                   "num_classes",
                   "multilabel",
                   "ignore_index",
                   "target_values",
                   "class_names",
                   "patch_shape"};
  const config::Composer composer({CYTRA_SOURCE_DIR "/configs"});
  const std::vector<std::string> overrides{"data.path=/no/such",
                                           "paths.output_dir=" + (dir / "run")};
  run.config = composer.compose("train", overrides);
  EXPECT_EQ(train(run), 0);
  EXPECT_FALSE(fs::exists(dir / "run"));

  std::vector<std::string> wrong = overrides;
  wrong.insert(wrong.end(), {"+optimiser.lr=1", "trainer.max_epochs=ten", "model.filters=[x]"});
  run.config = composer.compose("train", wrong);
  std::string message;
  try {
    train(run);
  } catch (const ConfigError& error) {
    message = error.what();
  }
  EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 2) << message;
  expect_has(message, "Did you mean 'optimizer'?");
  expect_has(message, "trainer.max_epochs: expected an integer, got 'ten'");
  expect_has(message, "model.filters[0]: expected an integer, got 'x'");
}

}  // namespace
}  // namespace cytra
