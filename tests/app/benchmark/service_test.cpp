#include "app/benchmark/service.h"

#include <gtest/gtest.h>

#include "config/composer.h"

namespace cytra::app {
namespace {

TEST(BenchmarkService, ArrivalsAreAPoissonProcess) {
  const std::vector<double> times = poisson_arrivals(100000, 50, 1);
  EXPECT_NEAR(times.back(), 2000, 20);
  std::vector<int64_t> counts(2000);  // of each second: their variance is their mean
  for (const double time : times) {
    if (time < 2000) counts[static_cast<std::size_t>(time)] += 1;
  }
  double variance = 0;
  for (const int64_t count : counts)
    variance += static_cast<double>((count - 50) * (count - 50)) / 2000;
  EXPECT_NEAR(variance, 50, 5);
  EXPECT_EQ(poisson_arrivals(3, 1, 7), poisson_arrivals(3, 1, 7));
  EXPECT_NE(poisson_arrivals(3, 1, 7), poisson_arrivals(3, 1, 8));
}

TEST(BenchmarkService, TellsEachLoad) {
  Workload workload;
  workload.config = config::Composer({std::string(CYTRA_SOURCE_DIR) + "/configs"})
                        .compose("train",
                                 {"experiment=im2im/segmentation",
                                  "model.filters=[4,8,8]",
                                  "data.path=unused",
                                  "paths.output_dir=unused"});
  workload.shape = {1, 1, 16, 16};
  ServiceLoads loads;
  loads.max_batch_size = 4;
  loads.seconds = 0.001;
  loads.percents = {50, 100};
  const config::Node service = measure_service(workload, {}, loads);
  EXPECT_EQ(service.at("batches").map.size(), 3U);
  EXPECT_GT(service.get<double>("offline_images_per_s"), 0);
  ASSERT_EQ(service.at("loads").map.size(), 2U);
  for (const auto& [percent, row] : service.at("loads").map) {
    EXPECT_EQ(row.get<int64_t>("requests"), 20) << percent;
    EXPECT_EQ(row.get<int64_t>("rejected"), 0);
    EXPECT_LE(row.get<double>("p50_ms"), row.get<double>("p99_ms"));
    EXPECT_LE(row.get<double>("p99_ms"), row.get<double>("max_ms"));
    int64_t counted = 0;
    for (const auto& [end, count] : row.at("histogram_ms").map) counted += count.as<int64_t>();
    EXPECT_EQ(counted, 20);
    EXPECT_GE(row.get<double>("mean_batch"), 1);
    EXPECT_LE(row.get<double>("mean_batch"), 4);
  }
  EXPECT_EQ(service.at("saturated").get<int64_t>("rejected"), 0);
  const std::string table = service_table(service);
  for (const char* text : {"\n50 % ", "\n100 % ", "\nsaturated ", "offline, in batches of "})
    EXPECT_NE(table.find(text), std::string::npos) << text << table;
}

}  // namespace
}  // namespace cytra::app
