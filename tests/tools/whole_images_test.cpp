// `train experiment=im2im/classification` and `regression_scalar`, and `predict` with what they
// made: folders by class and tables, going on, pictures, and users' mistakes.
#include <filesystem>
#include <fstream>
#include <random>

#include <gtest/gtest.h>

#include "base/files.h"
#include "base/strings.h"
#include "config/json.h"
#include "io/csv.h"
#include "io/reader.h"
#include "tests/support/program.h"

namespace cytra {
namespace {
namespace fs = std::filesystem;
using test::Outcome;

constexpr const char* kSmall =
    " trainer.accelerator=cpu performance.num_threads=1 'patch_shape=[16,16]' "
    "'model.backbone.blocks_down=[1,1]' 'model.backbone.blocks_up=[1]' logger=csv "
    "callbacks.early_stopping=null data.batch_size=4 trainer.log_every_n_steps=1 "
    "trainer.steps_per_epoch=null ";

class WholeImages : public ::testing::Test {
 protected:
  /// Images of several sizes with a bright square (filled) or its outline (hollow).
  static void SetUpTestSuite() {
    dir_ = new test::TmpDir();
    std::mt19937 random(7);
    std::string rows = "raw,label,large,light,size\n";
    for (int i = 0; i < 16; ++i) {
      const bool hollow = i % 2 == 1;
      const std::string kind = hollow ? "hollow" : "filled";
      const int64_t extent = 20 + i % 3 * 4, side = 6 + i / 2 % 4 * 2,
                    light = i % 4 < 2 ? 250 : 120;
      io::Image image;
      image.shape = {1, 1, extent, extent};
      image.pixels.resize(static_cast<std::size_t>(extent * extent));
      for (auto& pixel : image.pixels) pixel = static_cast<unsigned char>(random() % 20);
      for (int64_t y = 0; y < side; ++y) {
        for (int64_t x = 0; x < side; ++x) {
          const bool inside = y > 0 && x > 0 && y + 1 < side && x + 1 < side;
          if (hollow && inside) continue;
          image.pixels[static_cast<std::size_t>((y + 4) * extent + x + 4)] =
              static_cast<unsigned char>(light);
        }
      }
      const std::string name = kind + "/" + std::to_string(i) + ".tif";
      fs::create_directories(at("images/" + kind));
      io::write_ome_tiff(at("images/" + name), image);
      rows += "images/" + name + "," + kind + "," + (side > 9 ? "1," : "0,") +
              (light > 200 ? "1," : "0,") + std::to_string(side) + "\n";
    }
    std::ofstream(at("all.csv")) << rows;
    folders_ = train("folders",
                     "data=class_folders 'class_names=[filled,hollow]' 'data.path=" + at("images") +
                         "' trainer.max_epochs=6 optimizer.lr=1e-2 '+logger.html={_target_: "
                         "HTMLReport, save_dir: " +
                         at("folders") + "}'");
    ASSERT_EQ(folders_.code, 0) << folders_.err;
  }
  static void TearDownTestSuite() {
    delete dir_;
    dir_ = nullptr;
  }
  static std::string at(const std::string& name) { return *dir_ / name; }
  static Outcome train(const std::string& name,
                       const std::string& more,
                       const char* experiment = "classification") {
    return test::shell(std::string("\"$BIN/train\" experiment=im2im/") + experiment + kSmall +
                       "'paths.output_dir=" + at(name) + "' " + more);
  }
  static Outcome predict(const std::string& trained,
                         const std::string& name,
                         const std::string& more) {
    return test::shell(
        "\"$BIN/predict\" 'checkpoint.ckpt_path=" + at(trained + "/checkpoints/last.ckpt") +
        "' trainer.accelerator=cpu --json 'paths.output_dir=" + at(name) + "' " + more);
  }
  static std::string of_table(const std::string& more = "") {
    return "'data.path=" + at("all.csv") + "' data.folds=4 trainer.max_epochs=2 " + more;
  }
  static config::Node results(const Outcome& outcome) {
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return config::parse_json(outcome.out, "stdout");
  }
  static void expect_mistake(const Outcome& outcome, const std::string& message) {
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    EXPECT_NE(outcome.err.find(message), std::string::npos) << outcome.err;
    std::size_t errors = 0;
    for (std::size_t i = 0; (i = outcome.err.find("error: ", i)) != std::string::npos; ++i)
      ++errors;
    EXPECT_EQ(errors, 1U) << outcome.err;
  }
  static test::TmpDir* dir_;
  static Outcome folders_;
};
test::TmpDir* WholeImages::dir_ = nullptr;
Outcome WholeImages::folders_{};

TEST_F(WholeImages, PredictWritesATableOfClassesAndPictures) {
  EXPECT_NE(folders_.out.find("val/balanced_accuracy: "), std::string::npos) << folders_.out;
  const std::string report = read_file(at("folders/report.html"));
  for (const char* part : {"<h3>Confusion matrix</h3>",
                           "<h3>Precision over recall</h3>",
                           "<th>true</th><th>predicted</th>",
                           "<a href=\"#val_images/0\">",
                           "id=\"train_batches/0\"",
                           "input, filled, predicted "})
    EXPECT_NE(report.find(part), std::string::npos) << part;
  const config::Node told =
      results(predict("folders",
                      "out",
                      "data.with_target=true data.batch_size=3 'data.path=" + at("all.csv") + "'"));
  const io::Table table = io::read_table(told.get<std::string>("table"));
  EXPECT_EQ(
      table.columns,
      (std::vector<std::string>{"image", "class", "probability_filled", "probability_hollow"}));
  ASSERT_EQ(table.rows.size(), 16U);
  int right = 0;
  for (const std::vector<std::string>& row : table.rows) {
    const double filled = std::stod(row[2]), hollow = std::stod(row[3]);
    EXPECT_NEAR(filled + hollow, 1, 1e-5);
    EXPECT_EQ(row[1], filled > hollow ? "filled" : "hollow");
    right += row[0].find("/" + row[1] + "/") != std::string::npos ? 1 : 0;
  }
  EXPECT_GE(right, 12) << read_file(told.get<std::string>("table"));
  EXPECT_NEAR(told.get<double>("accuracy"), right / 16.0, 1e-6);
  const io::Table confusion = io::read_table(told.get<std::string>("confusion"));
  EXPECT_EQ(confusion.columns, (std::vector<std::string>{"class", "found_filled", "found_hollow"}));
  EXPECT_EQ(std::stoi(confusion.rows[0][1]) + std::stoi(confusion.rows[1][2]), right);
  const io::Image picture = io::read_image(at("out/0_saliency.png"));
  EXPECT_EQ(picture.shape, (decltype(picture.shape){3, 1, 16, 16}));
}

TEST_F(WholeImages, PredictGoesOn) {
  const std::string all = "'data.path=" + at("all.csv") + "' ";
  results(predict("folders", "resumed", all + "trainer.limit_predict_batches=5"));
  fs::remove(at("resumed/0_saliency.png"));
  const Outcome second = predict("folders", "resumed", all + "--resume");
  results(second);
  EXPECT_NE(second.err.find("4 of them before"), std::string::npos) << second.err;
  results(predict("folders", "whole", all + "predict.overlay=false"));
  EXPECT_EQ(read_file(at("resumed/predictions.csv")), read_file(at("whole/predictions.csv")));
  EXPECT_TRUE(fs::exists(at("resumed/0_saliency.png")));
  EXPECT_FALSE(fs::exists(at("whole/0_saliency.png")));
  const Outcome direct =
      predict("folders", "resumed", all + "--resume performance.convolution=direct");
  results(direct);
  EXPECT_EQ(direct.err.find("of them before"), std::string::npos) << direct.err;
}

TEST_F(WholeImages, ProcessesShareTheImages) {
  const std::string all = "data.with_target=true 'data.path=" + at("all.csv") + "' ";
  const config::Node one = results(predict("folders", "one", all));
  const config::Node two = results(predict("folders", "two", all + "trainer.devices=2"));
  EXPECT_EQ(read_file(at("two/predictions.csv")), read_file(at("one/predictions.csv")));
  EXPECT_EQ(read_file(at("two/confusion.csv")), read_file(at("one/confusion.csv")));
  EXPECT_EQ(two.get<double>("accuracy"), one.get<double>("accuracy"));
  EXPECT_EQ(two.at("saliency").list.size(), 16U);
}

/// Three epochs at once, and two that one follows, give the same weights.
TEST_F(WholeImages, TrainingGoesOn) {
  const std::string folders =
      "data=class_folders 'class_names=[filled,hollow]' 'data.path=" + at("images") +
      "' scheduler=constant ";
  ASSERT_EQ(train("whole_run", folders + "trainer.max_epochs=3").code, 0);
  ASSERT_EQ(train("part", folders + "trainer.max_epochs=2").code, 0);
  const Outcome rest = train("rest",
                             folders + "trainer.max_epochs=3 'checkpoint.ckpt_path=" +
                                 at("part/checkpoints/last.ckpt") + "'");
  ASSERT_EQ(rest.code, 0) << rest.err;
  const std::string all = "'data.path=" + at("all.csv") + "' predict.overlay=false";
  results(predict("whole_run", "of_whole", all));
  results(predict("rest", "of_rest", all));
  EXPECT_EQ(read_file(at("of_whole/predictions.csv")), read_file(at("of_rest/predictions.csv")));
}

TEST_F(WholeImages, LabelsAreColumns) {
  const Outcome trained =
      train("labels",
            of_table("multilabel=true 'class_names=[large,light]' 'data.columns=[raw,large,light]' "
                     "loss=focal"));
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_NE(trained.out.find("val/roc_auc_large: "), std::string::npos) << trained.out;
  const config::Node told = results(
      predict("labels",
              "labels_out",
              "data.with_target=true predict.overlay=false 'data.path=" + at("all.csv") + "'"));
  const io::Table table = io::read_table(told.get<std::string>("table"));
  EXPECT_EQ(
      table.columns,
      (std::vector<std::string>{"image", "labels", "probability_large", "probability_light"}));
  for (const std::vector<std::string>& row : table.rows) {
    const bool large = std::stod(row[2]) > 0.5, light = std::stod(row[3]) > 0.5;
    EXPECT_EQ(
        row[1],
        std::string(large ? "large" : "") + (large && light ? ";" : "") + (light ? "light" : ""));
  }
  // The accuracy is that of single labels, as in validation.
  const io::Table truth = io::read_table(at("all.csv"));
  double right = 0;
  for (std::size_t i = 0; i < truth.rows.size(); ++i) {
    for (const auto& [column, cell] : {std::pair("large", 2), std::pair("light", 3)}) {
      const bool is = std::stod(truth.rows[i][truth.column(column)]) != 0;
      right += is == (std::stod(table.rows[i][cell]) > 0.5) ? 1 : 0;
    }
  }
  EXPECT_NEAR(
      told.get<double>("accuracy"), right / static_cast<double>(2 * truth.rows.size()), 1e-6);
}

/// Models that have learned numbers in other units are averaged in the numbers' own.
TEST_F(WholeImages, AnEnsembleAveragesNumbers) {
  io::Table table = io::read_table(at("all.csv"));
  for (auto& row : table.rows)
    row[table.column("size")] = std::to_string(100 * std::stod(row[table.column("size")]));
  io::write_table(at("hundreds.csv"), table.columns, table.rows);
  const std::string words =
      "target_col=size 'data.columns=[raw,size]' data.folds=4 trainer.max_epochs=2 ";
  ASSERT_EQ(train("ones", words + "'data.path=" + at("all.csv") + "'", "regression_scalar").code,
            0);
  ASSERT_EQ(
      train("hundreds", words + "'data.path=" + at("hundreds.csv") + "'", "regression_scalar").code,
      0);
  const std::string all = "predict.overlay=false 'data.path=" + at("all.csv") + "'";
  const auto numbers_of = [](const Outcome& outcome) {
    std::vector<double> numbers;
    for (const auto& row : io::read_table(results(outcome).get<std::string>("table")).rows)
      numbers.push_back(std::stod(row[1]));
    return numbers;
  };
  const std::vector<double> ones = numbers_of(predict("ones", "ones_out", all)),
                            hundreds = numbers_of(predict("hundreds", "hundreds_out", all));
  const std::vector<double> mean = numbers_of(
      test::shell("\"$BIN/predict\" --json trainer.accelerator=cpu 'checkpoint.ckpt_path=[" +
                  at("ones/checkpoints/last.ckpt") + "," + at("hundreds/checkpoints/last.ckpt") +
                  "]' 'paths.output_dir=" + at("both_out") + "' " + all));
  ASSERT_EQ(mean.size(), ones.size());
  for (std::size_t i = 0; i < mean.size(); ++i)
    EXPECT_NEAR(mean[i], (ones[i] + hundreds[i]) / 2, 1e-3 * hundreds[i]);
  expect_mistake(predict("ones", "x", "predict.temperature=2 " + all),
                 "predict.temperature: it is for probabilities");
}

TEST_F(WholeImages, NumbersAreInTheirUnits) {
  const Outcome trained = train("numbers",
                                of_table("target_col=size data.stratify=label "
                                         "'data.columns=[raw,size,label]'"),
                                "regression_scalar");
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_NE(trained.out.find("val/r2: "), std::string::npos) << trained.out;
  const config::Node told = results(
      predict("numbers", "numbers_out", "data.with_target=true 'data.path=" + at("all.csv") + "'"));
  const io::Table table = io::read_table(told.get<std::string>("table")),
                  truth = io::read_table(at("all.csv"));
  EXPECT_EQ(table.columns, (std::vector<std::string>{"image", "size"}));
  double error = 0;
  for (std::size_t i = 0; i < truth.rows.size(); ++i)
    error += std::abs(std::stod(table.rows[i][1]) - std::stod(truth.rows[i][4])) / 16;
  EXPECT_NEAR(told.get<double>("mae"), error, 1e-4);
  EXPECT_LT(error, 4);  // of 6 to 12
}

TEST_F(WholeImages, StacksHaveClasses) {
  std::string rows = "raw,label\n";
  for (int i = 0; i < 4; ++i) {
    io::Image stack;
    stack.shape = {1, 6, 16, 16};
    stack.pixels.assign(6 * 16 * 16, static_cast<unsigned char>(10));
    for (std::size_t p = 0; p < 300; ++p)
      stack.pixels[(i % 2 == 0 ? 0 : 1000) + p] = static_cast<unsigned char>(200);
    io::write_ome_tiff(at("stack" + std::to_string(i) + ".tif"), stack);
    rows += "stack" + std::to_string(i) + ".tif," + std::to_string(i % 2) + "\n";
  }
  std::ofstream(at("stacks.csv")) << rows;
  const Outcome trained = train("stacks",
                                "'data.path=" + at("stacks.csv") +
                                    "' data.folds=2 spatial_dims=3 "
                                    "'patch_shape=[6,16,16]' trainer.max_epochs=1");
  ASSERT_EQ(trained.code, 0) << trained.err;
  const config::Node told =
      results(predict("stacks", "stacks_out", "'data.path=" + at("stacks.csv") + "'"));
  EXPECT_EQ(io::read_table(told.get<std::string>("table")).rows.size(), 4U);
  EXPECT_TRUE(fs::exists(at("stacks_out/stack0_saliency.png")));
}

TEST_F(WholeImages, MistakesAreOneLine) {
  const std::string folders =
      "data=class_folders trainer.max_epochs=1 'data.path=" + at("images") + "' ";
  expect_mistake(train("x", folders + " 'class_names=[round,hollow]'"),
                 "expected class_names=[filled,hollow]");
  expect_mistake(train("x", of_table("'class_names=[filled,round]'")),
                 "'label' is 'hollow', expected one of class_names: filled, round");
  std::ofstream(at("one.csv"))
      << "raw,label\nimages/filled/0.tif,filled\nimages/filled/2.tif,filled\n"
         "images/filled/4.tif,filled\n";
  expect_mistake(
      train("x", "'class_names=[filled,hollow]' data.folds=3 'data.path=" + at("one.csv") + "'"),
      "are of the class filled: expected two classes or more");
  fs::create_directories(at("broken/filled"));
  fs::create_directories(at("broken/hollow"));
  expect_mistake(
      train("x",
            "data=class_folders 'class_names=[filled,hollow]' 'data.path=" + at("broken") + "'"),
      "no images in this folder, expected those of the class filled");
  for (const char* kind : {"filled", "hollow"}) {
    for (int i = 0; i < 2; ++i)
      std::ofstream(at(std::string("broken/") + kind + "/" + std::to_string(i) + ".tif")) << "none";
  }
  expect_mistake(
      train("x",
            "data=class_folders 'class_names=[filled,hollow]' 'data.path=" + at("broken") + "'"),
      "broken/");
  expect_mistake(
      predict("folders", "x", "predict.save=probability 'data.path=" + at("all.csv") + "'"),
      "predict.save: this model tells of whole images");
  expect_mistake(predict("folders", "x", "predict.format=png 'data.path=" + at("all.csv") + "'"),
                 "predict.format: this model tells of whole images");
  std::ofstream(at("twice.csv")) << "raw,label\nimages/filled/0.tif,filled\n"
                                    "images/filled/0.tif,hollow\nimages/filled/2.tif,filled\n";
  expect_mistake(
      train("x",
            "'class_names=[filled,hollow]' data.stratify=label data.folds=2 'data.path=" +
                at("twice.csv") + "'"),
      "rows of this file have 'filled' and 'hollow' in 'label'");
  expect_mistake(train("x", of_table("data.stratify=label data.folds=null")), "data.stratify");
  expect_mistake(test::shell("\"$BIN/train\" experiment=im2im/classification model=dynunet "
                             "trainer.accelerator=cpu 'class_names=[filled,hollow]' 'data.path=" +
                             at("all.csv") + "' data.folds=4"),
                 "expected model=image_classifier");
}

}  // namespace
}  // namespace cytra
