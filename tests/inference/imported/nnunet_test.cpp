// Models of nnU-Net: tests/golden/make_nnunet_models.py wrote them and what nnU-Net makes of its
// images.
#include "inference/imported/nnunet.h"

#include <filesystem>
#include <fstream>
#include <iterator>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "config/registry.h"
#include "data/sample/image_tensor.h"
#include "data/sample/sample.h"
#include "inference/decoders/decoder.h"
#include "inference/models/trained_model.h"
#include "inference/predictor/original_grid.h"
#include "inference/predictor/predictor.h"
#include "io/reader.h"
#include "nn/weights.h"
#include "tests/support/golden.h"
#include "tests/support/message_of.h"
#include "tests/support/tmp_dir.h"

namespace cytra::inference {
namespace {

namespace fs = std::filesystem;
using config::Node;

std::string nnunet_models() {
  return test::golden_folder() + "/nnunet_models/";
}
std::string planes_folder() {
  return nnunet_models() + "Dataset001_Planes/nnUNetTrainer__nnUNetPlans__2d";
}
std::string slices_folder() {
  return nnunet_models() + "Dataset003_Slices/nnUNetTrainer__nnUNetPlans__2d";
}
std::string volumes_folder() {
  return nnunet_models() + "Dataset002_Volumes/nnUNetTrainer__nnUNetPlans__3d_fullres";
}

/// What nnU-Net made, in the file's order of axes.
at::Tensor nnunets(const std::string& name, bool is_turned) {
  static const io::SafetensorsFile file(nnunet_models() + "expected.safetensors");
  at::Tensor values = nn::tensor_of(file.tensors().at(name), name);
  if (is_turned) values = values.transpose(-3, -2);
  return values.to(at::kFloat).contiguous();
}

/// The channels of an image as LoadImaged joins them.
data::Sample sample_of(const std::string& image, int64_t channels, int64_t dims) {
  data::Sample sample;
  sample.id = image;
  std::vector<at::Tensor> parts;
  for (int64_t c = 0; c < channels; ++c) {
    const std::string path = nnunet_models() + "images/" + image + "_000" + std::to_string(c) +
                             (dims == 2 ? ".png" : ".nii.gz");
    io::Image read = io::read_image(path);
    sample.geometries["raw"] = read.geometry;
    parts.push_back(data::to_tensor(std::move(read), dims, path).to(at::kFloat));
  }
  sample.tensors["raw"] = at::cat(parts);
  return sample;
}

void expect_prepared(const std::string& name, const at::Tensor& made, const at::Tensor& expected) {
  ASSERT_EQ(made.sizes(), expected.sizes()) << name;
  // A sum of many values, and splines: by what float32 allows.
  EXPECT_LT((made - expected).abs().max().item<double>(),
            2e-5 * std::max(1.0, expected.abs().max().item<double>()))
      << name;
}

TEST(NnunetPreprocessing, EqualsNnunets) {
  Rng rng(0);
  for (const std::string name : {"planes", "same", "finer", "slices"}) {
    const bool are_planes = name == "planes", are_slices = name == "slices";
    const std::string folder = are_planes   ? planes_folder()
                               : are_slices ? slices_folder()
                                            : volumes_folder();
    const Node config = read_nnunet(folder + "/fold_0/any").config;
    const std::string image = are_planes ? "plane" : are_slices ? "same" : name;
    data::Sample sample = sample_of(image, are_planes || are_slices ? 1 : 2, are_planes ? 2 : 3);
    make<data::Transform>(config.at("data.transforms.valid").list.at(1))->apply(sample, rng);
    at::Tensor expected = nnunets(name + ".prepared", !are_planes);
    if (are_planes) expected = expected.select(1, 0);
    expect_prepared(name, sample.at("raw"), expected);
  }
  for (const std::string name : {"spline", "torch", "simple"}) {
    Node transform = config::load_yaml(nnunet_models() + name + ".json");
    transform.set("_target_", Node::make_string("NnunetPreprocessingd"));
    transform.set("keys", Node::make_list(std::vector<std::string>{"raw"}));
    data::Sample sample = sample_of("finer", 2, 3);
    make<data::Transform>(transform)->apply(sample, rng);
    expect_prepared(name, sample.at("raw"), nnunets(name + ".prepared", false));
    // The middle of the image stays where it is.
    EXPECT_NEAR(sample.geometries["raw"].spacing_um[0] / 1000,
                transform.at("spacing").list[0].as<double>(),
                0.15);
  }
}

TEST(NnunetModels, PredictAsNnunetDoes) {
  struct Case {
    std::string name, path;
    bool are_planes;
  };
  for (const Case& one : {Case{"planes", planes_folder(), true},
                          Case{"same", volumes_folder(), false},
                          Case{"finer", nnunet_models() + "Dataset002_Volumes", false},
                          Case{"slices", slices_folder(), false}}) {
    SCOPED_TRACE(one.name);
    PredictorOptions options;
    options.form = "logits";
    const Predictor predictor = Predictor::load(one.path, options);
    at::Tensor image = nnunets(one.name + ".prepared", !one.are_planes);
    at::Tensor expected = nnunets(one.name + ".logits", !one.are_planes);
    if (one.are_planes) {
      image = image.select(1, 0);
      expected = expected.select(1, 0);
    }
    const at::Tensor made = predictor.predict(image);
    ASSERT_EQ(made.sizes(), expected.sizes());
    // nnU-Net rounds its weights of windows to 16 bits, which the corners of an image show.
    const at::Tensor off = (made - expected).abs() / expected.abs().max();
    EXPECT_LT(off.max().item<double>(), 0.03);
    EXPECT_LT(off.mean().item<double>(), 2e-4);
    EXPECT_GT(made.argmax(0).eq(expected.argmax(0)).to(at::kDouble).mean().item<double>(), 0.995);
  }
}

TEST(NnunetModels, ScoresComeBackToTheFileAsThere) {
  Rng rng(0);
  for (const std::string name : {"same", "finer", "slices"}) {
    SCOPED_TRACE(name);
    const bool are_slices = name == "slices";
    const Node config =
        read_nnunet((are_slices ? slices_folder() : volumes_folder()) + "/fold_0/any").config;
    data::Sample sample = sample_of(are_slices ? "same" : name, are_slices ? 1 : 2, 3);
    ToFileGrid grid;
    grid.file = sample.geometry();
    grid.to = sample.at("raw").sizes().slice(1).vec();
    make<data::Transform>(config.at("data.transforms.valid").list.at(1))->apply(sample, rng);
    const at::Tensor logits = nnunets(name + ".logits", true), raw = sample.at("raw");
    grid.given = sample.geometry();
    grid.from = raw.sizes().slice(1).vec();
    grid.finish = decoder_of(config.at("task"))->finish("mask", 0.5);
    grid.coarse_from = config.get<double>("task.separate_z");
    grid.learned_spacing = config.get<std::vector<double>>("task.learned_spacing", {});
    const at::Tensor labels = all_of(*grid.rows(), logits)[0],
                     expected = nnunets(name + ".labels", false);
    ASSERT_EQ(labels.sizes(), expected.sizes());
    EXPECT_GT(expected.mean().item<double>(), 0.05);
    EXPECT_EQ(labels.ne(expected).sum().item<int64_t>(), 0);
  }
}

class NnunetFolder : public ::testing::Test {
 protected:
  NnunetFolder() {
    fs::copy(planes_folder(), folder_, fs::copy_options::recursive);
    if (const fs::path second = folder_ / "fold_1"; fs::exists(second)) fs::remove_all(second);
  }
  void change(const std::string& file, const std::string& from, const std::string& to) {
    std::string text = read_file((folder_ / file).string());
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    std::ofstream(folder_ / file) << text.replace(at, from.size(), to);
  }
  std::vector<LoadedModel> load(const fs::path& path) {
    CheckpointOptions options;
    options.ckpt_path = {path.string()};
    return load_models(options);
  }
  std::string error() {
    return message_of<Error>([&] { load(folder_); });
  }
  test::TmpDir dir_;
  fs::path folder_ = fs::path(dir_.path()) / "nnUNetTrainer__nnUNetPlans__2d";
};

TEST_F(NnunetFolder, GivesNetworkLabelsAndWindows) {
  const std::vector<LoadedModel> models = load(planes_folder());
  ASSERT_EQ(models.size(), 2U);  // its folds
  EXPECT_EQ(models[0].out_channels, 3);
  EXPECT_TRUE(models[0].network);
  EXPECT_EQ(models[0].config.get<std::vector<std::string>>("task.class_names"),
            (std::vector<std::string>{"cell", "edge"}));
  EXPECT_EQ(models[0].config.get<std::vector<int64_t>>("task.inference_args.roi_size"),
            (std::vector<int64_t>{32, 48}));
  EXPECT_TRUE(models[0].config.at("patch_shape").list.empty());  // predict's windows do not grow
  EXPECT_TRUE(keeps_file_grid(models[0], {}));
  EXPECT_FALSE(keeps_file_grid(models[0], false));
  EXPECT_EQ(load(folder_ / "fold_0" / "checkpoint_final.pth").size(), 1U);
  const LoadedModel volumes = load(volumes_folder()).at(0);
  EXPECT_EQ(volumes.divisor, (std::vector<int64_t>{2, 1, 2}));  // in the file's order
}

TEST_F(NnunetFolder, TheDatasetMayNameVeryManyImages) {
  std::string training = "{\"training\": [0";  // as of nnU-Net's first version
  for (int i = 0; i < 6000; ++i)
    training += fmt::format(",{{\"image\": \"{}.nii.gz\", \"label\": \"{}.nii.gz\"}}", i, i);
  change("dataset.json", "{", training + "],");
  EXPECT_EQ(load(folder_).at(0).out_channels, 3);
}

TEST_F(NnunetFolder, RefusesWhatIsNotRunHere) {
  change("plans.json", "PlainConvUNet", "PrimusM");
  EXPECT_NE(error().find("'PrimusM', expected PlainConvUNet or ResidualEncoderUNet"),
            std::string::npos);
  change("plans.json", "PrimusM", "PlainConvUNet");
  change("plans.json", "ZScoreNormalization", "ZScoreNormalisation");
  EXPECT_NE(
      message_of<Error>([&] {
        make<data::Transform>(load(folder_).at(0).config.at("data.transforms.valid").list.at(1));
      }).find("ZScoreNormalization"),
      std::string::npos);
  change("plans.json", "\"inherits_from\": \"parent\"", "\"inherits_from\": \"parents\"");
  EXPECT_NE(error().find("no configuration 'parents'"), std::string::npos);
  change("plans.json",
         "\"inherits_from\": \"parents\"",
         "\"inherits_from\": \"parent\", \"previous_stage\": \"3d_lowres\"");
  EXPECT_NE(error().find("cascades are not run here"), std::string::npos);
  fs::remove_all(folder_ / "fold_0");
  EXPECT_NE(error().find("no fold_0/checkpoint_final.pth"), std::string::npos);
}

/// Lists that do not fit the axes, and numbers that no network has.
TEST_F(NnunetFolder, PlansAreChecked) {
  const fs::path volumes = fs::path(dir_.path()) / fs::path(volumes_folder()).filename();
  fs::copy(volumes_folder(), volumes, fs::copy_options::recursive);
  for (const auto& [folder, name] : {std::pair(folder_, "2d"), std::pair(volumes, "3d_fullres")}) {
    const Node plans = config::load_yaml((folder / "plans.json").string());
    const bool is_volume = folder == volumes;
    for (const char* text : {"spacing: [1]",
                             "spacing: [1, 1, 1, 1]",
                             "spacing: {a: 1}",
                             "spacing: wide",
                             "spacing: []",
                             "spacing: [1, -1, 1]",
                             "spacing: [.nan, 1, 1]",
                             "patch_size: [8]",
                             "patch_size: []",
                             "patch_size: {a: 1}",
                             "patch_size: large",
                             "patch_size: [0, 8, 8]",
                             "patch_size: [1e9, 8, 8]",
                             "patch_size: [8.5, 8, 8]",
                             "features_per_stage: [0, 0, 0]",
                             "features_per_stage: [-4, 8, 8]",
                             "features_per_stage: [4000000000, 4, 4]",
                             "features_per_stage: {}",
                             "n_stages: 4000000000",
                             "kernel_sizes: [[3], [3], [-3]]",
                             "strides: [[1], [2], [0]]",
                             "strides: 5000000000"}) {
      for (const bool is_turned : {false, true}) {
        Node changed = plans;
        if (is_turned && is_volume)
          changed.set("transpose_forward", Node::make_list(std::vector<int64_t>{2, 1, 0}));
        const Node given = config::parse_yaml(text, "case");
        const auto& [key, value] = given.map[0];
        Node& chosen = *changed.find(std::string("configurations.") + name);
        const bool is_of_network = chosen.find_direct(key) == nullptr;
        (is_of_network ? *chosen.find("architecture.arch_kwargs") : chosen).set(key, value);
        std::ofstream(folder / "plans.json") << config::to_yaml(changed);
        EXPECT_NE(message_of<Error>([&] { load(folder); }), "") << name << " " << text;
      }
    }
  }
}

/// Plans before nnU-Net 2.5 describe the same network by other keys.
TEST_F(NnunetFolder, OldPlansGiveTheSameNetwork) {
  const at::Tensor image = at::rand({1, 1, 32, 48});
  const at::Tensor expected = load(folder_).at(0).forward(image).at(0);
  Node plans = config::load_yaml((folder_ / "plans.json").string());
  Node& chosen = *plans.find("configurations.2d");
  const Node arguments = chosen.at("architecture").at("arch_kwargs");
  Node old = Node::make_map();
  for (const auto& [key, value] : chosen.map)
    if (key != "architecture") old.set(key, value);
  old.set("UNet_class_name", Node::make_string("PlainConvUNet"));
  old.set("UNet_base_num_features", Node::make_integer(4));
  old.set("unet_max_num_features", Node::make_integer(16));
  old.set("n_conv_per_stage_encoder", arguments.at("n_conv_per_stage"));
  old.set("n_conv_per_stage_decoder", arguments.at("n_conv_per_stage_decoder"));
  old.set("conv_kernel_sizes", arguments.at("kernel_sizes"));
  old.set("pool_op_kernel_sizes", arguments.at("strides"));
  chosen = old;
  std::ofstream(folder_ / "plans.json") << config::to_yaml(plans);
  EXPECT_TRUE(load(folder_).at(0).forward(image).at(0).equal(expected));
}

}  // namespace
}  // namespace cytra::inference
