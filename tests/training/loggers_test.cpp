#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/strings.h"
#include "config/registry.h"
#include "io/events/event_file.h"
#include "io/image.h"
#include "tests/support/events.h"
#include "tests/support/tmp_dir.h"
#include "training/logger.h"

namespace cytra::training {
namespace {

std::shared_ptr<Logger> make_logger(const std::string& target,
                                    const std::string& folder,
                                    int64_t step = 0,
                                    const std::string& options = "") {
  const auto logger =
      cytra::make<Logger>("{_target_: " + target + ", save_dir: '" + folder + "'" + options + "}");
  static const config::Node tree = config::parse_yaml(
      "{experiment_name: 'a <b> & c', model: {_target_: DynUNet, depth: 3}, seed: null, "
      "task: {class_names: [red cell, white]}, "
      "data: {shape: [32, 64], transforms: [{_target_: RandFlipd}]}, paths: {output_dir: x}}",
      "test");
  logger->open({folder, tree, step, {{"device", "cpu <1>"}}});
  return logger;
}

io::Image picture(unsigned char value) {
  io::Image image;
  image.shape = {3, 1, 4, 5};
  image.pixels.assign(image.bytes(), value);
  return image;
}

TEST(CsvLogger, GrowsByColumnsAndRows) {
  const test::TmpDir dir;
  const std::string path = dir / "csv/version_0/metrics.csv";
  {
    const auto logger = make_logger("CSVLogger", dir.path());
    logger->log({{"a", 1.5}}, 0, 1);
    logger->log({{"a", 2}}, 0, 2);
    logger->log({{"b", 3}}, 1, 2);
    logger->log({{"a", 4}, {"b", std::nan("")}}, 1, 3);
  }
  EXPECT_EQ(read_file(path), "epoch,step,a,b\n0,1,1.5,\n0,2,2,\n1,2,,3\n1,3,4,nan\n");
  make_logger("CSVLogger", dir.path(), 2)
      ->log({{"b", 5}, {"c", 6}}, 1, 3);  // from a checkpoint of step 2
  EXPECT_EQ(read_file(path), "epoch,step,a,b,c\n0,1,1.5,,\n0,2,2,,\n1,2,,3,\n1,3,,5,6\n");
  make_logger("CSVLogger", dir.path())->log({{"c", 7}}, 0, 1);
  EXPECT_EQ(read_file(path), "epoch,step,c\n0,1,7\n");
}

TEST(PrometheusLogger, HasTheNewestOfEachMetric) {
  const test::TmpDir dir;
  const auto logger = cytra::make<Logger>("{_target_: PrometheusLogger, save_dir: '" + dir.path() +
                                          "', filename: a.prom}");
  const config::Node tree =
      config::parse_yaml("{experiment_name: 'a \"b', data: {batch_size: 8}}", "test");
  logger->open({"runs/1", tree, 5, {}});
  const std::string labels = R"({experiment="a \"b",run="runs/1"} )";
  EXPECT_EQ(read_file(dir / "a.prom"), "# TYPE cytra_step gauge\ncytra_step" + labels + "5\n");
  logger->log({{"train/loss_step", 0.5}, {"data_time", 0.1}, {"step_time", 0.3}}, 0, 10);
  logger->log({{"val/loss", std::nan("")}}, 1, 20);
  logger->close({{"best.val-loss", HUGE_VAL}});
  const std::string text = read_file(dir / "a.prom");
  for (const char* line : {"cytra_step$20\n",
                           "cytra_epoch$1\n",
                           "# TYPE cytra_train_loss_step gauge\ncytra_train_loss_step$0.5\n",
                           "cytra_images_per_second$20\n",
                           "cytra_val_loss$NaN\n",
                           "cytra_best_val_loss$+Inf\n"}) {
    std::string expected = line;
    expected.replace(expected.find('$'), 1, labels);
    EXPECT_NE(text.find(expected), std::string::npos) << expected << text;
  }
}

TEST(JsonLogger, WritesAnObjectPerRow) {
  const test::TmpDir dir;
  {
    const auto logger = make_logger("JSONLogger", dir.path());
    logger->log({{"val/dice", 0.25}, {"a \"b\"", -1e-20}}, 0, 1);
    logger->log({{"loss", std::nan("")}, {"inf", INFINITY}}, 3, 20);
  }
  make_logger("JSONLogger", dir.path(), 19)->log({{"loss", 1}}, 3, 20);
  std::ifstream file(dir / "metrics.jsonl");
  std::vector<nlohmann::json> rows;
  for (std::string line; std::getline(file, line);) rows.push_back(nlohmann::json::parse(line));
  ASSERT_EQ(rows.size(), 2U) << "that of step 20 is after the checkpoint";
  EXPECT_EQ(rows[0].at("epoch"), 0);
  EXPECT_EQ(rows[0].at("val/dice"), 0.25);
  EXPECT_EQ(rows[0].at("a \"b\""), -1e-20);
  EXPECT_GT(rows[0].at("time"), 1.7e9);
  EXPECT_EQ(rows[1].at("loss"), 1);
  {
    const auto logger = make_logger("JSONLogger", dir.path());
    logger->log({{"loss", std::nan("")}, {"inf", INFINITY}}, 3, 20);
  }
  const auto row = nlohmann::json::parse(read_file(dir / "metrics.jsonl"));
  EXPECT_TRUE(row.at("loss").is_null());
  EXPECT_TRUE(row.at("inf").is_null());
}

// Read back by TensorBoard itself in tests/golden/check_tensorboard.py, which names the folder.
TEST(TensorBoardLogger, WritesWhatItGets) {
  const test::TmpDir own;
  const char* wanted = std::getenv("CYTRA_EVENTS_DIR");
  const std::string dir = wanted != nullptr ? wanted : own.path();
  {
    const auto logger = make_logger("TensorBoardLogger", dir);
    for (int64_t step = 1; step <= 10; ++step)
      logger->log({{"val/loss", 1.0 / static_cast<double>(step)}}, step / 5, step);
    logger->log_image("sample", picture(7), 10);
    io::Histogram histogram;
    histogram.max = histogram.count = histogram.sum = histogram.sum_squares = 1;
    histogram.limits = {0.5, 1};
    histogram.counts = {0, 1};
    logger->log_histogram("weights", histogram, 10);
    logger->log_text("model", "a  b\nc  d", 10);
  }
  const std::string first = test::only_file(dir + "/tensorboard");
  const auto records = test::records_of(read_file(first));
  // Version, start of the session, its parameters, environment, config, 10 rows, image, histogram,
  // text.
  ASSERT_EQ(records.size(), 18U);
  EXPECT_NE(records[17].find("```\na  b\nc  d\n```"), std::string::npos) << "columns in Markdown";
  EXPECT_NE(records[2].find("model.depth"), std::string::npos);
  EXPECT_EQ(records[2].find("paths.output_dir"), std::string::npos);
  EXPECT_EQ(records[2].find("RandFlipd"), std::string::npos);
  EXPECT_NE(records[15].find("\x89PNG"), std::string::npos);
  {  // from a checkpoint of step 6
    const auto logger = make_logger("TensorBoardLogger", dir, 6);
    logger->log({{"val/loss", 0.125}}, 1, 7);
    logger->log_text("outcome", "finished", 7);
    logger->close({{"val/loss", 0.125}});
  }
  EXPECT_TRUE(std::filesystem::exists(first));  // its later steps are TensorBoard's to leave out
  make_logger("TensorBoardLogger", dir + "/other", 0, ", name: null, version: 2, prefix: p")
      ->log({{"a", 1}}, 0, 1);
  EXPECT_NE(read_file(test::only_file(dir + "/other/version_2")).find("p-a"), std::string::npos);
}

TEST(HtmlReport, IsOnePageOfItsOwn) {
  const test::TmpDir dir;
  write_file(dir / "train.log",
             "2026-01-01 00:00:00 begin\n2026-01-01 00:00:01 warning: a <bad> image\n"
             "2026-01-01 00:00:02 warning: a <bad> image\n");
  const auto logger = make_logger("HTMLReport", dir.path());
  for (int64_t step = 1; step <= 5000; ++step) {
    logger->log({{"lr-AdamW", 0.1}}, 0, step);
    logger->log({{"train/loss_step", 1.0 / static_cast<double>(step)},
                 {"data_time", 0.1},
                 {"step_time", 0.3}},
                0,
                step);
  }
  for (const int64_t step : {2500, 5000})
    logger->log({{"val/loss", 0.5}, {"val/dice", 0.7}, {"val/dice_class_1", 0.25}}, 1, step);
  logger->log({{"test/dice", 0.625}}, 1, 5000);
  logger->log_image("a \"sample\"", picture(7), 1);
  logger->log_image("a \"sample\"", picture(9), 2);
  logger->log_caption("a \"sample\"", "<a>.tif: input | target, epoch 1");
  logger->log({{"val/dice_red_cell", 0.5}}, 1, 5000);
  logger->log_text("outcome", "failed: <script>", 5000);
  EXPECT_FALSE(std::filesystem::exists(dir / "report.html"));
  logger->close({{"val/loss", 0.5}, {"best/val/dice", 0.75}});
  const std::string html = read_file(dir / "report.html");
  const auto count = [&](const std::string& part) {
    int found = 0;
    for (std::size_t at = 0; (at = html.find(part, at)) != std::string::npos; ++at) ++found;
    return found;
  };
  EXPECT_LT(html.size(), 200'000U);
  EXPECT_EQ(count("<svg"), 4) << "losses, Dice, seconds per batch, learning rate";
  EXPECT_EQ(count("<small>last val/dice_class_1</small><b>0.25</b>"), 1);
  EXPECT_EQ(count("<small>test/dice</small><b>0.625</b>"), 1);
  EXPECT_EQ(count("src=\"data:image/png;base64,iVBORw0KGgo"), 1) << "the newest of each name";
  EXPECT_EQ(count("src="), 1) << "nothing from elsewhere";
  EXPECT_EQ(count("href"), 0);
  EXPECT_EQ(count("a &quot;sample&quot;, step 2<br>&lt;a&gt;.tif: input | target, epoch 1"), 1);
  EXPECT_EQ(count("background:#e69f00\"></i>red cell</span>"), 1) << "a class of the pictures";
  EXPECT_EQ(count("<li>a &lt;bad&gt; image</li>"), 1);
  EXPECT_EQ(count("failed: &lt;script&gt;"), 2) << "badge and table";
  EXPECT_EQ(count("<script>"), 1) << "our own";
  EXPECT_EQ(count("cpu &lt;1&gt;"), 1);
  EXPECT_EQ(count("waiting for images 25%"), 1);
  EXPECT_EQ(count("<small>best val/dice</small><b>0.75</b>"), 1);
}

}  // namespace
}  // namespace cytra::training
