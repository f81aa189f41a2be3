// Packages of bioimage.io: tests/golden/make_bioimageio.py wrote them, and bioimageio.core tests
// them.
#include "data/transforms/intensity/bioimageio.h"

#include <filesystem>
#include <fstream>
#include <map>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "base/sha256.h"
#include "data/sample/image_tensor.h"
#include "inference/engines/entry.h"
#include "inference/engines/openvino.h"
#include "inference/models/trained_model.h"
#include "inference/outputs/result.h"
#include "inference/predictor/predictor.h"
#include "inference/predictor/windowed_model.h"
#include "io/npy.h"
#include "nn/weights.h"
#include "tests/support/golden.h"
#include "tests/support/message_of.h"
#include "tests/support/tmp_dir.h"

namespace cytra::inference {
namespace {

namespace fs = std::filesystem;

std::string packages() {
  return test::golden_folder() + "/bioimageio/";
}

bool has_openvino() {
  try {
    describe_onnx("", "", std::nullopt);
  } catch (const EngineUnfit& unfit) {
    return !unfit.is_usual;
  }
  return true;
}

TEST(BioimageioOperations, EqualBioimageioCores) {
  const io::SafetensorsFile file(packages() + "operations.safetensors");
  const config::Node cases = config::load_yaml(packages() + "operations.yaml");
  EXPECT_GE(cases.map.size(), 21U);
  const at::Tensor reference = nn::tensor_of(file.tensors().at("reference"), "reference");
  for (const auto& [name, operations] : cases.map) {
    SCOPED_TRACE(name);
    const at::Tensor image =
        nn::tensor_of(file.tensors().at(name == "planes" ? "volume" : "image"), name);
    const at::Tensor expected = nn::tensor_of(file.tensors().at(name), name);
    const at::Tensor made = data::BioimageioOperations(operations)(image, reference);
    ASSERT_EQ(made.sizes(), expected.sizes());
    EXPECT_LT((made - expected).abs().max().item<double>(), 1e-5);
  }
}

TEST(BioimageioOperations, RefuseWhatIsNotKnown) {
  const auto mistake = [](const std::string& yaml) {
    return message_of<ConfigError>(
        [&] { data::BioimageioOperations(config::parse_yaml(yaml, "list")); });
  };
  EXPECT_NE(mistake("[{id: zero_mean_unit_varianz}]").find("zero_mean_unit_variance"),
            std::string::npos);
  EXPECT_NE(mistake("[{id: clip, kwargs: {minimum: 1}}]").find("minimum"), std::string::npos);
  EXPECT_NE(mistake("[{id: clip}]").find("expected min or min_percentile"), std::string::npos);
  EXPECT_NE(mistake("[{id: scale_range, kwargs: {axes: [t]}}]").find("expected batch, channel"),
            std::string::npos);
  EXPECT_NE(
      mistake("[{id: scale_range, kwargs: {axes: [batch]}}]").find("expected one of the image's"),
      std::string::npos);
  EXPECT_NE(mistake("{id: sigmoid}").find("expected a list"), std::string::npos);
  EXPECT_NE(mistake("[{id: custom, kwargs: {}}]").find("'custom'"), std::string::npos);
  EXPECT_NE(mistake("[{id: scale_range, kwargs: {reference_tensor: raw}}]")
                .find("expected input or null"),
            std::string::npos);
}

TEST(BioimageioOperations, SayThatTheirReferenceIsNotThere) {
  const data::BioimageioOperations scale(config::parse_yaml(
      "[{id: scale_mean_variance, kwargs: {axes: [y, x], reference_tensor: input}}]", "list"));
  EXPECT_TRUE(scale.take_input());
  const at::Tensor image = at::rand({2, 4, 5});
  EXPECT_THROW(scale(image, {}), DataError);
  EXPECT_THROW(scale(image, at::rand({1, 4, 5})), DataError);  // of other channels
  EXPECT_NO_THROW(scale(image, at::rand({2, 6, 5})));
}

class Package : public ::testing::Test {
 protected:
  /// A copy of a package that a test may change.
  void copy(const std::string& name) {
    path_ = dir_ / name;
    fs::copy(packages() + name, path_);
  }
  void change(const std::string& from, const std::string& to) {
    const std::string file = path_ + "/rdf.yaml";
    std::string text = read_file(file);
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    std::ofstream(file) << text.replace(at, from.size(), to);
  }
  LoadedModel load() {
    CheckpointOptions options;
    options.ckpt_path = {path_};
    testing::internal::CaptureStderr();
    std::vector<LoadedModel> models;
    try {
      models = load_models(options);
    } catch (...) {
      testing::internal::GetCapturedStderr();
      throw;
    }
    said_ = testing::internal::GetCapturedStderr();
    return models.at(0);
  }
  std::string error() {
    return message_of<Error>([&] { load(); });
  }
  test::TmpDir dir_;
  std::string path_, said_;
};

/// An array of a package as (C,[D,]H,W).
at::Tensor array_of(const std::string& name, const std::string& file) {
  const io::NpyArray array = io::read_npy(packages() + name + "/" + file);
  const at::Tensor values = data::to_tensor(array.values, 2, file).to(at::kFloat).view(array.shape);
  if (name == "channels_last") return values[0].permute({2, 0, 1}).contiguous();
  return name == "plane" ? values.unsqueeze(0) : values[0];
}

/// The test image gives the test output, through transforms, windows and steps.
TEST(Packages, PredictTheirTestImages) {
  const std::map<std::string, std::string> forms{{"masks", "probability"},
                                                 {"channels_last", ""},
                                                 {"volume", ""},
                                                 {"plane", ""},
                                                 {"onnx", "probability"},
                                                 {"state_dict", ""}};
  for (const auto& [name, form] : forms) {
    SCOPED_TRACE(name);
    if (name == "onnx" && !has_openvino()) continue;
    PredictorOptions options;
    options.form = form;
    if (name == "state_dict")  // its norms depend on the window
      options.inference_args = config::parse_yaml("{roi_size: [0, 0]}", "test");
    testing::internal::CaptureStderr();
    const Predictor predictor = Predictor::load(packages() + name, options);
    EXPECT_EQ(testing::internal::GetCapturedStderr().find("warning"), std::string::npos);
    Result result;
    const config::Node* before =
        predictor.model().config.find("data.transforms.valid.1.operations");
    const data::BioimageioOperations prepare(before == nullptr ? config::Node() : *before);
    const at::Tensor image = array_of(name, "test_input.npy");
    result.values = predictor.predict(prepare(image, image));
    apply_all(result_steps(predictor, {}), result);
    const at::Tensor expected = array_of(name, "test_output.npy");
    ASSERT_EQ(result.values.sizes(), expected.sizes());
    EXPECT_LT((result.values - expected).abs().max().item<double>(), 2e-5);
  }
}

/// Objects of StarDist and Cellpose are those that bioimageio.core makes with their packages.
TEST(Packages, MakeTheirObjects) {
  for (const char* name : {"stars", "stars_grid", "flows"}) {
    SCOPED_TRACE(name);
    PredictorOptions options;  // the stored output is that of the whole image
    options.inference_args = config::parse_yaml("{roi_size: [0, 0]}", "test");
    testing::internal::CaptureStderr();
    const Predictor predictor = Predictor::load(packages() + name, options);
    EXPECT_EQ(testing::internal::GetCapturedStderr().find("warning"), std::string::npos);
    const at::Tensor found = predictor.predict(array_of(name, "test_input.npy"));
    const at::Tensor output = array_of(name, "test_output.npy");  // its one channel may come last
    ASSERT_EQ(found.numel(), output.numel());
    const at::Tensor expected = output.reshape(found.sizes());
    EXPECT_EQ(found.max().item<int64_t>(), expected.max().item<int64_t>());
    EXPECT_GE(expected.max().item<int64_t>(), 4);
    // Voxels on the edge of a shape may be drawn or not.
    EXPECT_LT(found.ne(expected).to(at::kDouble).mean().item<double>(), 1e-2);
  }
}

class KeptRows final : public ResultOutput {
 public:
  explicit KeptRows(at::Tensor& to) : to_(to) {}
  void take(const ImageResult& /*result*/, const at::Tensor& rows) override { to_ = rows.clone(); }
  void finish(ResultFiles& /*files*/) override {}

 private:
  at::Tensor& to_;
};

/// A reference is the image as it was loaded, also where transforms have changed it.
TEST_F(Package, AReferenceIsTheUnprocessedInput) {
  copy("masks");
  change("- id: sigmoid",
         "- id: scale_mean_variance\n    kwargs: {axes: [channel, y, x], reference_tensor: raw}");
  load();
  EXPECT_EQ(said_.find("can't be predicted"), std::string::npos) << said_;
  CheckpointOptions checkpoint;
  checkpoint.ckpt_path = {path_};
  const Predictor predictor(load_models(checkpoint), {});
  const at::Tensor raw = array_of("masks", "test_input.npy");
  data::Sample sample;
  sample.id = "image";
  sample.tensors["raw"] = raw;
  const auto input =
      std::make_shared<const ModelInput>(predictor.windowed().transforms.apply(sample, "raw"));
  const ResultOptions options{result_steps(predictor, {})};
  at::Tensor made;
  ImageResult::Outputs outputs;
  outputs.push_back(std::make_unique<KeptRows>(made));
  ImageResult result(predictor, options, input, std::move(outputs));
  result.run();
  EXPECT_NEAR(made.mean().item<double>(), raw.mean().item<double>(), 1e-3);
  EXPECT_NEAR(made.std().item<double>(), raw.std().item<double>(), 1e-2);
}

TEST_F(Package, ItsDescriptionBecomesOurs) {
  copy("masks");
  const LoadedModel masks = load();
  EXPECT_EQ(masks.in_channels, 1);
  EXPECT_EQ(masks.divisor, (std::vector<int64_t>{8, 8}));
  EXPECT_TRUE(masks.config.get<bool>("task.multilabel"));
  EXPECT_EQ(masks.config.get<std::string>("task.y_key"), "mask");
  EXPECT_TRUE(masks.torchscript);
  EXPECT_EQ(said_.find("warning"), std::string::npos) << said_;
  copy("volume");  // sides of 8, 12, 16 ... planes
  const LoadedModel volume = load();
  EXPECT_EQ(volume.divisor, (std::vector<int64_t>{4, 16, 16}));
  {  // 4 planes are filled up to 8
    const c10::InferenceMode inference_mode;
    const at::Tensor four = at::rand({2, 2, 4, 16, 32}),
                     eight = at::constant_pad_nd(four, {0, 0, 0, 0, 0, 4});
    EXPECT_TRUE(volume.forward(four).at(0).equal(volume.forward(eight).at(0).narrow(2, 0, 4)));
  }
  EXPECT_EQ(volume.config.get<std::string>("task.decoder._target_"), "RegressionDecoder");
  copy("plane");
  const LoadedModel plane = load();
  EXPECT_EQ(plane.fixed_window, (std::vector<int64_t>{20, 28}));
  EXPECT_FALSE(plane.torchscript) << "it does not turn the axes";
}

TEST_F(Package, AnotherOutputThanItsOwnIsSaid) {
  copy("masks");
  at::Tensor other = array_of("masks", "test_output.npy") + 0.01;
  std::ofstream(path_ + "/test_output.npy")
      << io::npy_bytes({1, 1, 24, 32}, data::to_image(other, io::Dtype::f32, {}));
  load();
  EXPECT_NE(said_.find("1000000 of a million values differ by more than 1.0e-03"),
            std::string::npos)
      << said_;
  fs::remove(path_ + "/test_output.npy");
  load();
  EXPECT_NE(said_.find("it was not tried"), std::string::npos) << said_;
}

TEST_F(Package, WhatIsNotKnownIsNamedWithItsPlace) {
  const auto mistake =
      [&](const std::string& name, const std::string& from, const std::string& to) {
        fs::remove_all(dir_ / name);
        copy(name);
        change(from, to);
        const std::string message = error();
        EXPECT_EQ(message.find('\n'), std::string::npos) << message;
        return message;
      };
  using testing::HasSubstr;
  EXPECT_THAT(mistake("masks", "0.5.4", "0.3.6"),
              HasSubstr("rdf.yaml:1:17: '0.3.6', expected 0.4 or 0.5"));
  EXPECT_THAT(mistake("masks", "id: sigmoid", "id: custom"), HasSubstr("'custom' is not one of"));
  EXPECT_THAT(mistake("stars", "n_rays: 16", "n_rays: 16\n      overlap_label: 3"),
              HasSubstr("expected null"));
  EXPECT_THAT(mistake("stars", "grid:\n      - 1\n", "grid:\n"), HasSubstr("expected 2 numbers"));
  EXPECT_THAT(mistake("flows", "do_3D: false", "do_3D: true"), HasSubstr("expected false"));
  EXPECT_THAT(mistake("flows", "- id: cellpose", "- id: sigmoid\n  - id: cellpose"),
              HasSubstr("expected that alone"));
  EXPECT_THAT(
      mistake("masks", "id: sigmoid", "id: scale_range\n    kwargs: {reference_tensor: other}"),
      HasSubstr("expected the input: 'raw'"));
  EXPECT_THAT(mistake("masks", "id: raw", "id: mask"),
              HasSubstr("another tensor has the same name"));
  EXPECT_THAT(mistake("masks", "type: model", "type: dataset"), HasSubstr("expected model"));
  EXPECT_THAT(mistake("masks", "    id: y\n", "    id: w\n"), HasSubstr("expected x, y or z"));
  EXPECT_THAT(mistake("masks", "source: weights.pt", "source: ../weights.pt"),
              HasSubstr("a file in the package's folder"));
  EXPECT_THAT(mistake("masks", "axis_id: y", "axis_id: w"),
              HasSubstr("there is no axis 'w' of 'raw'"));
  EXPECT_THAT(mistake("masks", "- y\n", "- depth\n"), HasSubstr("there is no axis 'depth'"));
  EXPECT_THAT(mistake("masks", "    halo: 2", "    scale: 0.5\n    halo: 2"),
              HasSubstr("the output has 512 voxels along y, the input 256"));
  EXPECT_THAT(mistake("volume", "- 1\n    - 1\n    - 1", "- 1\n    - 1\n    - 2"),
              HasSubstr("the output has"));
  EXPECT_THAT(mistake("volume", "axes: zyx", "axes: cyx"), HasSubstr("along the axes 'z'"));
  EXPECT_THAT(mistake("masks", "min: 8", "min: 9223372036854775807"), HasSubstr("a size of"));
  EXPECT_THAT(mistake("masks", "step: 8", "step: 0"),
              HasSubstr("expected a positive min and step"));
  EXPECT_THAT(mistake("masks", "halo: 2", "scale: 0"), HasSubstr("expected a positive scale"));
  EXPECT_THAT(mistake("volume", "axes: bczyx", "axes: bcqyx"),
              HasSubstr("expected letters of bitczyx"));
  EXPECT_THAT(mistake("volume", "mode: fixed", "mode: fixed\n      sigma: 1"), HasSubstr("sigma"));
  EXPECT_THAT(mistake("state_dict", "monai.networks.nets", "mine"),
              HasSubstr("'mine.BasicUNet' is Python's"));
  EXPECT_THAT(mistake("state_dict", "pytorch_state_dict", "keras_hdf5"),
              HasSubstr("expected torchscript or onnx"));
  EXPECT_THAT(mistake("state_dict", "inputs:\n", "inputs:\n- {id: more, axes: []}\n"),
              HasSubstr("2 inputs, expected one"));
}

TEST_F(Package, ChecksumsOfItsFilesAreVerified) {
  copy("masks");
  const std::string sum = sha256(read_file(path_ + "/weights.pt"));
  change("source: weights.pt", "source: weights.pt\n    sha256: " + sum);
  EXPECT_NO_THROW(load());
  std::ofstream(path_ + "/weights.pt", std::ios::app) << "more";
  EXPECT_THAT(error(),
              testing::AllOf(testing::HasSubstr("weights.pt: its SHA-256 is "),
                             testing::HasSubstr("expected " + sum)));
}

TEST_F(Package, OnnxThatDoesNotFitItsDescriptionIsAnError) {
  if (!has_openvino()) GTEST_SKIP() << "no OpenVINO";
  copy("onnx");
  change("size: 24", "size: 32");
  change("size: 24", "size: 32");
  EXPECT_THAT(error(), testing::HasSubstr("it takes 24 along axis 3, not 32"));
}

TEST(Onnx, SaysWhatItIs) {
  if (!has_openvino()) GTEST_SKIP() << "no OpenVINO";
  const OnnxFacts facts =
      describe_onnx(read_file(packages() + "masks/weights.onnx"), "", std::nullopt);
  EXPECT_EQ(facts.shape, (std::vector<int64_t>{-1, 1, -1, -1}));
  test::TmpDir dir;
  const auto mistake = [&](const std::string& bytes) {
    std::ofstream(dir / "net.onnx") << bytes;
    CheckpointOptions options;
    options.ckpt_path = {dir / "net.onnx"};
    return message_of<DataError>([&] { load_models(options); });
  };
  const std::string whole = read_file(packages() + "masks/weights.onnx");
  const std::string message = mistake(whole.substr(0, whole.size() / 2));
  EXPECT_THAT(message, testing::HasSubstr("net.onnx: OpenVINO: it can't be read"));
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
}

}  // namespace
}  // namespace cytra::inference
