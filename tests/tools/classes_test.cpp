// Several classes and several masks, from training to prediction.
#include <algorithm>
#include <fstream>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "base/strings.h"
#include "config/json.h"
#include "config/node.h"
#include "io/csv.h"
#include "io/reader.h"
#include "tests/support/program.h"

namespace cytra {
namespace {
using test::Outcome;
using test::shell;

constexpr int64_t kSide = 48;

io::Image blank(int64_t channels) {
  io::Image image;
  image.shape = {channels, 1, kSide, kSide};
  image.pixels.assign(static_cast<std::size_t>(channels * kSide * kSide), 0);
  return image;
}

unsigned char& at(io::Image& image, int64_t channel, int64_t y, int64_t x) {
  return image.pixels[static_cast<std::size_t>((channel * kSide + y) * kSide + x)];
}

/// Squares of two kinds that may overlap: 60 and 120 brighter than a noisy ground.
struct Scene {
  io::Image raw = blank(1), classes = blank(1), masks = blank(2);
  explicit Scene(unsigned seed) {
    std::mt19937 random(seed);
    const auto draw = [&](int64_t low, int64_t high) {
      return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low));
    };
    for (int64_t kind = 0; kind < 2; ++kind) {
      for (int square = 0; square < 2; ++square) {
        const int64_t top = draw(0, kSide - 18), left = draw(0, kSide - 18), side = draw(12, 18);
        for (int64_t y = top; y < top + side; ++y) {
          for (int64_t x = left; x < left + side; ++x) at(masks, kind, y, x) = 255;
        }
      }
    }
    for (int64_t y = 0; y < kSide; ++y) {
      for (int64_t x = 0; x < kSide; ++x) {
        const bool first = at(masks, 0, y, x) > 0, second = at(masks, 1, y, x) > 0;
        at(raw, 0, y, x) =
            static_cast<unsigned char>((first ? 60 : 0) + (second ? 120 : 0) + draw(0, 10));
        at(classes, 0, y, x) = second ? 2 : first ? 1 : 0;
      }
    }
  }
};

class Classes : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    dir_ = new test::TmpDir();
    const std::pair<const char*, int> splits[] = {{"train", 6}, {"valid", 2}, {"test", 3}};
    unsigned seed = 0;
    for (const auto& [split, count] : splits) {
      std::ofstream list(*dir_ / split + std::string(".csv"));
      list << "raw,classes,masks\n";
      for (int i = 0; i < count; ++i) {
        const Scene scene(seed++);
        const std::string stem = split + std::to_string(i);
        io::write_ome_tiff(*dir_ / (stem + ".tif"), scene.raw);
        io::write_ome_tiff(*dir_ / (stem + "_classes.tif"), scene.classes);
        io::write_ome_tiff(*dir_ / (stem + "_masks.tif"), scene.masks);
        list << stem << ".tif," << stem << "_classes.tif," << stem << "_masks.tif\n";
      }
    }
  }
  static void TearDownTestSuite() {
    delete dir_;
    dir_ = nullptr;
  }
  static Outcome train(const std::string& overrides, const std::string& output) {
    return shell(
        "export OMP_NUM_THREADS=1; \"$BIN/train\" experiment=im2im/segmentation "
        "trainer.steps_per_epoch=null callbacks.early_stopping=null trainer.accelerator=cpu --json "
        "'data.path=" +
        dir_->path() + "' 'paths.output_dir=" + *dir_ / output +
        "' model.filters=[4,8,8] patch_shape=[32,32] optimizer.lr=2e-2 logger=csv "
        "trainer.max_epochs=40 trainer.check_val_every_n_epoch=40 performance.num_threads=1 " +
        overrides);
  }
  static Outcome predict(const std::string& trained, const std::string& more) {
    return shell(
        "export OMP_NUM_THREADS=1; \"$BIN/predict\" 'checkpoint.ckpt_path=" +
        (*dir_ / (trained + "/checkpoints/last.ckpt")) + "' 'data.path=" + (*dir_ / "test.csv") +
        "' data.with_target=true inference_args.roi_size=null trainer.accelerator=cpu --json " +
        more);
  }
  static config::Node results(const Outcome& outcome) {
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return config::parse_yaml(outcome.out, "stdout");
  }
  /// The mean over images of one channel's Dice, counted from the files.
  template <class IsTrue>
  static double dice(const config::Node& predicted, const char* target, const IsTrue& is_true) {
    double sum = 0;
    const auto files = predicted.get<std::vector<std::string>>("prediction");
    EXPECT_EQ(files.size(), 3U);
    for (std::size_t i = 0; i < files.size(); ++i) {
      const io::Image guess = io::read_image(files[i]),
                      truth = io::read_image(*dir_ / ("test" + std::to_string(i) + target));
      EXPECT_EQ(guess.shape, truth.shape);
      double both = 0, all = 0;
      for (std::size_t v = 0; v < truth.pixels.size(); ++v) {
        const bool g = is_true(guess, v), t = is_true(truth, v);
        both += g && t;
        all += g + t;
      }
      sum += 2 * both / all;
    }
    return sum / static_cast<double>(files.size());
  }
  static test::TmpDir* dir_;
};
test::TmpDir* Classes::dir_ = nullptr;

/// Class and area of each object of a plane: what touches, at corners too, and is of one class.
std::multiset<std::pair<int, int>> objects_in(const io::Image& image, int64_t channel) {
  const auto offset = static_cast<std::size_t>(channel * kSide * kSide);
  std::vector<unsigned char> left(
      image.pixels.begin() + static_cast<std::ptrdiff_t>(offset),
      image.pixels.begin() + static_cast<std::ptrdiff_t>(offset + kSide * kSide));
  std::multiset<std::pair<int, int>> objects;
  for (std::size_t start = 0; start < left.size(); ++start) {
    const int kind = left[start];
    if (kind == 0) continue;
    int area = 0;
    std::vector<int64_t> open{static_cast<int64_t>(start)};
    left[start] = 0;
    while (!open.empty()) {
      const int64_t at = open.back();
      open.pop_back();
      ++area;
      for (int64_t y = at / kSide - 1; y <= at / kSide + 1; ++y) {
        for (int64_t x = at % kSide - 1; x <= at % kSide + 1; ++x) {
          if (y < 0 || x < 0 || y >= kSide || x >= kSide) continue;
          unsigned char& next = left[static_cast<std::size_t>(y * kSide + x)];
          if (next != kind) continue;
          next = 0;
          open.push_back(y * kSide + x);
        }
      }
    }
    objects.emplace(image.shape[0] > 1 ? static_cast<int>(channel) : kind, area);
  }
  return objects;
}

/// The tables and outlines of `predict.measurements` and `contours` have those objects.
void expect_objects(const config::Node& predicted, const std::vector<std::string>& names = {}) {
  const auto files = predicted.get<std::vector<std::string>>("prediction"),
             tables = predicted.get<std::vector<std::string>>("measurements"),
             outlines = predicted.get<std::vector<std::string>>("geojson");
  ASSERT_EQ(tables.size(), files.size());
  std::size_t most = 0;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const io::Image mask = io::read_image(files[i]);
    std::multiset<std::pair<int, int>> expected, found;
    for (int64_t c = 0; c < mask.shape[0]; ++c) expected.merge(objects_in(mask, c));
    const io::Table table = io::read_table(tables[i]);
    ASSERT_EQ(table.columns[0], "label");
    ASSERT_EQ(table.columns[1], "class");
    const std::size_t area = names.empty() ? 2 : 3;
    ASSERT_EQ(table.columns[area], "area");
    if (!names.empty()) {
      ASSERT_EQ(table.columns[2], "class_name");
    }
    std::set<std::string> labels;
    for (const std::vector<std::string>& row : table.rows) {
      labels.insert(row[0]);
      found.emplace(std::stoi(row[1]), std::stoi(row[area]));
      if (!names.empty()) {
        EXPECT_EQ(row[2], names.at(std::stoul(row[1])));
      }
    }
    EXPECT_EQ(found, expected) << tables[i];
    EXPECT_EQ(labels.size(), table.rows.size());
    most = std::max(most, labels.size());
    const config::Node shapes = config::parse_json(read_file(outlines[i]), outlines[i]);
    EXPECT_EQ(shapes.at("features").list.size(), expected.size()) << outlines[i];
  }
  EXPECT_GT(most, 2U) << "more objects than classes";
}

TEST_F(Classes, ThreeThatExcludeEachOther) {
  const config::Node trained =
      results(train("num_classes=3 target_col=classes test=true", "three"));
  for (const char* name : {"val/dice", "val/dice_class_1", "test/dice_class_2"})
    EXPECT_GT(trained.get<double>(name), 0.8) << name;
  const std::string csv = read_file(*dir_ / "three/csv/version_0/metrics.csv");
  EXPECT_NE(csv.find("val/dice_class_2"), std::string::npos) << csv;
  const config::Node predicted =
      results(predict("three", "'paths.output_dir=" + (*dir_ / "p3") + "'"));
  for (const int k : {1, 2}) {
    const double expected = dice(predicted, "_classes.tif", [&](const io::Image& image, auto v) {
      return image.pixels[v] == k;
    });
    const std::string name = "dice_class_" + std::to_string(k);
    EXPECT_GT(expected, 0.8);
    EXPECT_NEAR(predicted.get<double>(name), expected, 1e-12);
    EXPECT_NEAR(trained.get<double>("test/" + name), expected, 1e-12);
  }
  const Outcome measured = predict(
      "three",
      "predict.measurements=true predict.contours=geojson 'paths.output_dir=" + (*dir_ / "m3") +
          "'");
  expect_objects(results(measured));
  EXPECT_NE(measured.err.find("objects are the connected components"), std::string::npos)
      << measured.err;
  const config::Node probability = results(predict(
      "three", "predict.save=probability 'paths.output_dir=" + (*dir_ / "p3 probability") + "'"));
  const io::Image shares =
      io::read_image(probability.get<std::vector<std::string>>("prediction").front());
  ASSERT_EQ(shares.shape[0], 3);
  const auto* values = reinterpret_cast<const float*>(shares.pixels.data());
  for (int64_t v = 0; v < kSide * kSide; ++v)
    ASSERT_NEAR(values[v] + values[v + kSide * kSide] + values[v + 2 * kSide * kSide], 1, 1e-5);
}

TEST_F(Classes, MasksThatOverlap) {
  const config::Node trained = results(
      train("num_classes=2 multilabel=true target_col=masks '+logger.html={_target_: HTMLReport, "
            "save_dir: " +
                (*dir_ / "html") + "}' 'class_names=[red cell,white]'",
            "masks"));
  const std::vector<std::string> named{"dice_red_cell", "dice_white"};
  for (const char* name : {"val/dice", "val/dice_red_cell", "val/dice_white"})
    EXPECT_GT(trained.get<double>(name), 0.8) << name;
  const std::string report = read_file(*dir_ / "html/report.html");
  EXPECT_NE(report.find("</i>red cell</span>"), std::string::npos) << "the legend of pictures";
  EXPECT_EQ(report.find("<h3>dice_white</h3>"), std::string::npos) << "beside the mean";
  const config::Node predicted =
      results(predict("masks", "'paths.output_dir=" + (*dir_ / "p2") + "'"));
  constexpr auto kVoxels = static_cast<std::size_t>(kSide * kSide);
  for (const std::size_t k : {0U, 1U}) {
    const double expected = dice(predicted, "_masks.tif", [&](const io::Image& image, auto v) {
      return v / kVoxels == k && image.pixels[v] > 0;
    });
    EXPECT_GT(expected, 0.8);
    EXPECT_NEAR(predicted.get<double>(named[k]), expected, 1e-12);
  }
  const io::Image mask =
      io::read_image(predicted.get<std::vector<std::string>>("prediction").front());
  EXPECT_EQ(*std::max_element(mask.pixels.begin(), mask.pixels.end()), 1);
  expect_objects(results(predict("masks",
                                 "predict.measurements=true predict.contours=geojson "
                                 "'paths.output_dir=" +
                                     (*dir_ / "m2") + "'")),
                 {"red cell", "white"});
}

/// Each ends with exit code 2, one line that names the switch or the file, and no run folder.
TEST_F(Classes, MistakesAreNamed) {
  const auto expect_mistake = [](const std::string& overrides,
                                 const std::vector<std::string>& parts) {
    const Outcome outcome = train(overrides, "mistake");
    EXPECT_EQ(outcome.code, 2) << overrides << "\n" << outcome.err;
    for (const std::string& part : parts)
      EXPECT_NE(outcome.err.find(part), std::string::npos) << part << " is not in " << outcome.err;
  };
  expect_mistake("model.out_channels=3 target_col=classes",
                 {"command line 'model.out_channels=3'", "num_classes=3"});
  expect_mistake("model.out_channels=3 target_col=masks", {"multilabel=true"});
  expect_mistake("num_classes=3 loss.sigmoid=true", {"task.loss.sigmoid", "num_classes=3"});
  expect_mistake("loss.softmax=true", {"task.loss.softmax", "one mask"});
  expect_mistake("num_classes=2 target_col=classes",
                 {"_classes.tif: ", "are not labels (2)", "0..1"});
  expect_mistake("num_classes=3 target_col=raw", {"train", "tif: ", "are not labels", "0..2"});
  expect_mistake("num_classes=3 target_col=masks",
                 {"_masks.tif: ", "2 channels", "multilabel=true"});
  expect_mistake("target_col=masks", {"_masks.tif: ", "num_classes=2 multilabel=true"});
}

}  // namespace
}  // namespace cytra
