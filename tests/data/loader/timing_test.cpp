#include "data/loader/timing.h"

#include <gtest/gtest.h>

#include "data/loader/loader_options.h"

namespace cytra {
namespace {

TEST(Verdict, SaysWhatHoldsUpTheTraining) {
  data::LoaderOptions options;
  const data::CacheManager::Stats cache;
  EXPECT_EQ(data::verdict({1, 1, 2}, options, cache, 8, false), "");
  EXPECT_EQ(data::verdict({3, 1, 100}, options, cache, 8, false),
            "data-bound: 75 % of the training time went into waiting for images (data_time 30.00 "
            "ms, step_time 10.00 ms per batch); raise data.num_workers (now 2; this machine has 8 "
            "cores)");
  EXPECT_EQ(data::verdict({0.1, 9.9, 100}, options, cache, 8, false).rfind("compute-bound: 1 %", 0),
            0U);
  const data::CacheManager::Stats full{1, 0, 3, 100, true};
  EXPECT_NE(data::verdict({3, 1, 100}, options, full, 8, false)
                .find("raise data.ram_cache_gb (now 2; 25 % of the images came from it)"),
            std::string::npos);
}

}  // namespace
}  // namespace cytra
