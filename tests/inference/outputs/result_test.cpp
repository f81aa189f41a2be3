// How an image's rows reach its outputs, and what these are given.
#include "inference/outputs/result.h"

#include <filesystem>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "base/lists.h"
#include "config/registry.h"
#include "inference/outputs/objects.h"
#include "inference/predictor/subject.h"
#include "io/csv.h"
#include "io/reader.h"
#include "io/tiff/ome_tiff.h"
#include "nn/model.h"
#include "nn/weights.h"
#include "tests/support/message_of.h"
#include "tests/support/tmp_dir.h"

namespace cytra::inference {
namespace {

/// What an output was given, in words.
struct Seen {
  std::vector<int64_t> rows;
  std::vector<int64_t> objects;  // of each channel
  io::ImageInfo info;
};
Seen* seen_by_test = nullptr;

template <bool kTakesObjects>
class TestOutput final : public ResultOutput {
 public:
  explicit TestOutput(const OutputPlace& place) : place_(place) {}
  bool takes_objects() const override { return kTakesObjects; }
  void take(const ImageResult& result, const at::Tensor& rows) override {
    seen_by_test->rows.push_back(rows.size(1));
    seen_by_test->info = result.info();
  }
  void take(const ImageResult& /*result*/, const ResultObjects& objects) override {
    seen_by_test->objects.push_back(objects.labels().max().item<int64_t>());
  }
  void finish(ResultFiles& files) override { files.emplace_back("seen", place_.stem); }

 private:
  OutputPlace place_;
};
const bool rows_output_is_added = add_result_output<TestOutput<false>>("test", "test_rows");
const bool objects_output_is_added = add_result_output<TestOutput<true>>("test", "test_objects");

class ImageResultTest : public ::testing::Test {
 protected:
  void SetUp() override {
    at::manual_seed(5);
    const std::string model =
        "{_target_: DynUNet, filters: [4, 8], strides: [1, 2], kernel_size: [3, 3], "
        "upsample_kernel_size: [2], out_channels: 1, spatial_dims: 2}";
    const auto network = make<nn::Model>(model);
    std::map<std::string, at::Tensor> kept;
    io::TensorViews views;
    for (const auto& [key, tensor] : nn::state_of(*network)) {
      kept[key] = tensor.detach().contiguous();
      views[key] = nn::view_of(kept[key]);
    }
    io::write_safetensors(
        dir_ / "model.safetensors",
        views,
        {{"config",
          "{task: {_target_: SegmentationTask, x_key: raw, y_key: seg, num_classes: 1, "
          "inference_args: {roi_size: 16, overlap: 0.25}, model: " +
              model +
              "}, data: {transforms: {train: [], predict: null, valid: [{_target_: LoadImaged, "
              "keys: [raw, seg], spatial_dims: 2}, {_target_: NormalizeIntensityd, keys: "
              "raw}]}}}"}});
    io::Image image;
    image.shape = {1, 1, 40, 33};
    image.pixels.resize(image.bytes());
    uint32_t state = 1;
    for (unsigned char& byte : image.pixels)
      byte = static_cast<unsigned char>((state = state * 1664525 + 1013904223) >> 24);
    io::write_ome_tiff(dir_ / "raw.ome.tif", image);
    sample_.id = dir_ / "raw.ome.tif";
    sample_.sources["raw"].path = sample_.id;
    place_.stem = dir_ / "raw_out";
    place_.source = sample_.id;
    seen_by_test = &seen_;
    config_.checkpoint.ckpt_path = {dir_ / "model.safetensors"};
    config_.performance.engine.backend = "eager";
  }
  Predictor predictor(const std::string& form = "") {
    PredictorOptions options;
    options.accelerator = "cpu";
    options.form = form;
    return predictors_of(load_subject(config_, c10::kCPU, {}), config_, {}, options)
        .front()
        .predictor;
  }
  static PostprocessSteps steps(const std::string& list) {
    return make_postprocess(config::parse_yaml(list, "steps"));
  }
  test::TmpDir dir_;
  data::Sample sample_;
  OutputPlace place_;
  ModelConfig config_;
  Seen seen_;
};

TEST_F(ImageResultTest, RowsGoThroughWhereNothingNeedsTheWhole) {
  const Predictor predicts = predictor();
  const c10::InferenceMode inference_mode;
  const auto input = std::make_shared<const ModelInput>(at::randn({1, 8, 9}));
  const ResultOptions options;
  ImageResult::Outputs outputs;
  outputs.push_back(make_result_output("test_rows", place_));
  ImageResult result(predicts, options, input, std::move(outputs));
  result.take(at::zeros({1, 3, 9}, at::kByte));
  EXPECT_EQ(seen_.rows, (std::vector<int64_t>{3}));
  EXPECT_EQ(seen_.info.shape, (std::array<int64_t, 4>{1, 1, 8, 9})) << "of the whole image";
  result.take(at::zeros({1, 5, 9}, at::kByte));
  result.finish();
  EXPECT_EQ(seen_.rows, (std::vector<int64_t>{3, 5}));
  EXPECT_EQ(result.files(), (ResultFiles{{"seen", place_.stem}}));
  EXPECT_FALSE(result.scored().defined());
}

TEST_F(ImageResultTest, IsKeptWholeForStepsObjectsAndScores) {
  const Predictor predicts = predictor();
  const c10::InferenceMode inference_mode;
  const auto input = std::make_shared<const ModelInput>(at::randn({1, 4, 6}));
  at::Tensor mask = at::zeros({1, 4, 6}, at::kByte);
  mask[0][0][0] = 1;
  mask[0][3][4] = 1;
  mask[0][3][5] = 1;
  const auto given = [&](const ResultOptions& options, const char* output) {
    seen_ = {};
    ImageResult::Outputs outputs;
    outputs.push_back(make_result_output(output, place_));
    ImageResult result(predicts, options, input, std::move(outputs));
    result.take(mask.narrow(1, 0, 2));
    EXPECT_TRUE(seen_.rows.empty());
    result.take(mask.narrow(1, 2, 2));
    result.finish();
    EXPECT_EQ(seen_.rows, (std::vector<int64_t>{4}));
    return result.scored();
  };
  ResultOptions options;
  given(options, "test_objects");
  EXPECT_EQ(seen_.objects, (std::vector<int64_t>{2})) << "components of the mask";
  EXPECT_EQ(seen_.info.dtype, io::Dtype::u8);
  options.keeps_scored = true;
  EXPECT_TRUE(given(options, "test_rows").equal(mask));
  options.steps = steps("[{_target_: ConnectedComponents}]");
  EXPECT_TRUE(given(options, "test_rows").equal(mask.to(at::kInt)))
      << "what is scored is the mask ahead of the objects";
  EXPECT_EQ(seen_.info.dtype, io::Dtype::u8) << "the smallest type that holds two objects";
}

TEST_F(ImageResultTest, FilesAreWrittenByEachOutput) {
  const Predictor predicts = predictor();
  const ResultOptions options{result_steps(predicts, {})};
  place_.class_name = [](int64_t number) { return "kind " + std::to_string(number); };
  const ResultFiles files = predict_files(
      predicts, sample_, options, place_, {"image", "table", "geojson", "imagej_roi", "overlay"});
  ASSERT_EQ(files.size(), 5U);
  const std::vector<std::pair<std::string, std::string>> expected{{"prediction", ".ome.tif"},
                                                                  {"measurements", ".csv"},
                                                                  {"geojson", ".geojson"},
                                                                  {"rois", "_rois.zip"},
                                                                  {"overlay", "_overlay.png"}};
  for (std::size_t i = 0; i < files.size(); ++i) {
    EXPECT_EQ(files[i].first, expected[i].first);
    EXPECT_EQ(files[i].second, place_.stem + expected[i].second);
    EXPECT_TRUE(std::filesystem::exists(files[i].second));
  }
  const io::Table table = io::read_table(place_.stem + ".csv");
  ASSERT_FALSE(table.rows.empty());
  EXPECT_EQ(table.rows[0][table.column("class_name")], "kind 1");
  EXPECT_EQ(io::read_image(files[0].second).shape, (std::array<int64_t, 4>{1, 1, 40, 33}));
}

TEST_F(ImageResultTest, ObjectsOfAnImageThatIsReadByRowsAreThoseOfTheWhole) {
  const Predictor predicts = predictor();
  const c10::InferenceMode inference_mode;
  place_.class_name = [](int64_t number) { return "kind " + std::to_string(number); };
  const std::vector<std::string> endings{".csv", ".geojson", "_rois.zip"};
  for (const char* list : {"[{_target_: FillHoles}, {_target_: ConnectedComponents}]", "[]"}) {
    ResultOptions options;
    options.steps = steps(list);
    const auto written = [&](int64_t by_rows_from) {
      const auto input = std::make_shared<const ModelInput>(
          predicts.windowed().transforms.apply(sample_, "raw", {}, by_rows_from));
      EXPECT_EQ(input->is_by_rows(), by_rows_from == 1);
      options.keeps_scored = by_rows_from != 1;
      ImageResult::Outputs outputs;
      for (const char* name : {"image", "table", "geojson", "imagej_roi"})
        outputs.push_back(make_result_output(name, place_));
      ImageResult result(predicts, options, input, std::move(outputs));
      EXPECT_EQ(result.is_whole(), by_rows_from != 1);
      result.run();
      EXPECT_EQ(result.has_components(), options.steps.empty());
      EXPECT_EQ(result.files().size(), 4U);
      return mapped(endings, [&](const std::string& end) { return read_file(place_.stem + end); });
    };
    const std::vector<std::string> whole = written(INT64_MAX), by_rows = written(1);
    EXPECT_GT(io::read_table(place_.stem + ".csv").rows.size(), 3U);
    for (std::size_t i = 0; i < endings.size(); ++i)
      EXPECT_TRUE(by_rows[i] == whole[i]) << list << endings[i];
  }
}

TEST_F(ImageResultTest, LogitsOfAMaskTellItsObjects) {
  const Predictor predicts = predictor("logits");
  const ResultOptions options;
  EXPECT_EQ(predict_files(predicts, sample_, options, place_, {"image", "table"}).size(), 2U);
  EXPECT_EQ(io::open_image(place_.stem + ".ome.tif")->info().dtype, io::Dtype::f32);
}

TEST(ResultOutputs, AreKnownByName) {
  const std::string message =
      message_of<ConfigError>([] { make_result_output("geojsn", OutputPlace{"a"}); });
  EXPECT_NE(message.find("geojson"), std::string::npos) << message;
  EXPECT_EQ(result_outputs("contours"), (std::vector<std::string>{"geojson", "imagej_roi"}));
}

}  // namespace
}  // namespace cytra::inference
