// Archives of torch.export that were made or damaged to do harm.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "config/registry.h"
#include "io/weights/exported_program.h"
#include "nn/exported/guards.h"
#include "nn/model.h"
#include "tests/support/golden.h"
#include "tests/support/message_of.h"
#include "tests/support/tmp_dir.h"

namespace cytra {
namespace {

std::shared_ptr<nn::Model> exported_model(const std::string& file) {
  config::Node node = config::Node::make_map();
  node.set("_target_", config::Node::make_string("ExportedProgram"));
  node.set("file", config::Node::make_string(file));
  return make<nn::Model>(node);
}

TEST(ExportedHostile, EachIsRefusedByName) {
  const std::map<std::string, std::string> expected{
      {"from_file", "the operator torch.ops.aten.from_file.default is not one that a network may"},
      {"higher_order", "torch.ops.higher_order.cond (control flow"},
      {"custom_operator", "the operator torch.ops.mylib.run.default is not one"},
      {"python_function", "builtins.eval is no operator that a network may call"},
      {"cycle", "the value 'relu' is used before it is made"},
      {"wrong_type", "its argument 'self' is no Tensor"},
      {"deep", "values within values"},
      {"other_version", "version 9 of torch.export's schema, 8 is supported"},
      {"names_outside", "'0.weight' lies in another folder"},
      {"negative_strides", "'0.weight' has a shape or strides that are not whole numbers"},
      {"beyond_the_file", "'0.weight' lies outside its storage"},
      {"pickled", "'0.weight' is a tensor of a class of its own"},
      {"complex", "'0.weight' is complex or not strided"},
      {"compressed", "is compressed"},
      {"half_sides", "gives (2,1,2,2) for an image of (2,1,4,4), expected its sides"},
      {"shape_of_a_billion", "makes a tensor of more than"}};
  std::size_t count = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(test::golden_folder() + "/exported/hostile")) {
    const std::string name = entry.path().stem().string();
    ASSERT_EQ(expected.count(name), 1U) << name;
    const std::string message = message_of<DataError>([&] {
      exported_model(entry.path().string())->all(at::zeros({2, 1, 4, 4}));
    });
    EXPECT_NE(message.find(expected.at(name)), std::string::npos) << name << ": " << message;
    EXPECT_NE(message.find(name + ".pt2"), std::string::npos) << message;
    ++count;
  }
  EXPECT_EQ(count, expected.size());
}

TEST(ExportedHostile, LeastSidesAreNoSmallOnes) {
  std::ifstream in(test::golden_folder() + "/exported/net.pt2", std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), {});
  const auto replace = [&](const std::string& given, std::string other) {
    ASSERT_NE(bytes.find(given), std::string::npos) << given;
    other.resize(given.size(), ' ');
    bytes.replace(bytes.find(given), given.size(), other);
  };
  // The image's height is 8 * s53.
  replace(R"x("Symbol('s53', positive=True, integer=True)")x",
          R"x("Mul(Integer(8), Symbol('s53'))")x");
  replace(R"("s53": {"min_val": 2, "max_val": null}, )",
          R"("s53": {"min_val":9223372036854775807}, )");
  const test::TmpDir tmp;
  std::ofstream(tmp / "net.pt2", std::ios::binary) << bytes;
  const auto model = exported_model(tmp / "net.pt2");
  const std::string message = message_of<DataError>([&] {
    model->all(at::zeros({2, model->in_channels(), 16, 16}));
  });
  EXPECT_NE(message.find("dimension 2 of its images is 8796093022208 or more, got 16"),
            std::string::npos)
      << message;
}

/// A digit, a letter or any byte is another one, at some places; or the end is missing.
void damage(std::string& bytes, std::mt19937& random) {
  const auto below = [&](std::size_t most) {
    return std::uniform_int_distribution<std::size_t>(0, most - 1)(random);
  };
  if (below(20) == 0) bytes.resize(below(bytes.size()));
  const std::size_t changes = 1 + below(4);
  for (std::size_t i = 0; i < changes && !bytes.empty(); ++i) {
    std::size_t at = below(bytes.size());
    if (below(4) == 0) {
      bytes[at] = static_cast<char>(below(256));
      continue;
    }
    for (std::size_t step = 0; step < 2000 && at < bytes.size(); ++step, ++at) {
      if (std::isdigit(static_cast<unsigned char>(bytes[at])) == 0) continue;
      bytes[at] = static_cast<char>('0' + below(10));
      break;
    }
  }
}

TEST(ExportedHostile, DamagedArchivesAreRefusedOrRun) {
  const char* given = std::getenv("CYTRA_MUTANTS");
  const int64_t count = given == nullptr ? 40 : std::atoll(given);
  const test::TmpDir tmp;
  int64_t refused = 0, run = 0;
  for (const char* name : {"attention", "dict", "residual", "shared", "volume"}) {
    std::ifstream in(test::golden_folder() + "/exported/" + name + ".pt2", std::ios::binary);
    const std::string whole((std::istreambuf_iterator<char>(in)), {});
    ASSERT_FALSE(whole.empty());
    std::vector<int64_t> seeds{589, 985, 1790};  // once of another library's exception
    for (int64_t i = 0; i < count; ++i) seeds.push_back(i);
    for (const int64_t seed : seeds) {
      std::mt19937 random(static_cast<unsigned>(seed));
      std::string bytes = whole;
      damage(bytes, random);
      const std::string path = tmp / "mutant.pt2";
      std::ofstream(path, std::ios::binary) << bytes;
      try {
        const auto model = exported_model(path);
        const bool is_volume = model->spatial_dims() == 3;
        if (model->in_channels() > 64) continue;
        model->eval();
        const at::NoGradGuard no_grad;
        model->all(at::ones(is_volume ? std::vector<int64_t>{2, model->in_channels(), 8, 16, 16}
                                      : std::vector<int64_t>{2, model->in_channels(), 16, 16}));
        ++run;
      } catch (const DataError&) {
        ++refused;
      } catch (const ConfigError&) {
        ++refused;
      } catch (const std::exception& error) {
        ADD_FAILURE() << name << ", seed " << seed << ": " << error.what();
      }
    }
  }
  EXPECT_GT(refused, count / 2);
  EXPECT_GT(run, count / 2);
}

TEST(ExportedGuards, AreComputedAsPythonDoes) {
  const std::vector<int64_t> sides{2, 1, 33, 48};
  for (const char* guard : {"L['x'].size()[3] % 16 == 0",
                            "(((-2) + L['x'].size()[3]) % 2) == 0",
                            "(L['x'].size()[3] // 2) != 1",
                            "min(L['x'].size()[2]*L['x'].size()[3], 8) == 8",
                            "2 <= L['x'].size()[2] < 34",
                            "not (L['x'].size()[2] == 32) and L['args'][0].size()[0] == 2",
                            "(-L['x'].size()[2]) // 2 == -17",
                            "(-L['x'].size()[2]) % 16 == 15",
                            "-9223372036854775807 % 9223372036854775806 > 0",
                            "7 % -9223372036854775807 < 0",
                            "L['x'].dtype == torch.float32",
                            "no condition"})
    EXPECT_TRUE(nn::holds(guard, sides)) << guard;
  for (const char* guard : {"L['x'].size()[2] % 16 == 0",
                            "max(1, L['x'].size()[3] // 2) != 24",
                            "2 <= L['x'].size()[2] < 33",
                            "False or L['x'].size()[0] > 2"})
    EXPECT_FALSE(nn::holds(guard, sides)) << guard;
  EXPECT_TRUE(nn::holds(std::string(100'000, '('), sides));
  for (const char* guard : {"1 // 0 == 1", "1 % 0 == 1"}) EXPECT_TRUE(nn::holds(guard, sides));
}

}  // namespace
}  // namespace cytra
