#include "app/serve/models/served_model.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace cytra::app {
namespace {

TEST(AskedResult, IsReadFromJson) {
  const AskedResult asked = asked_result_in({{"head", "cells"}, {"threshold", 0.25}, {"other", 1}});
  EXPECT_EQ(asked.head, "cells");
  EXPECT_EQ(asked.threshold, 0.25);
  EXPECT_EQ(asked_result_in(Json::object()).threshold, std::nullopt);
  for (const Json& threshold : {Json(-0.1), Json(1.5), Json("0.5"), Json()})
    EXPECT_THROW(asked_result_in({{"threshold", threshold}}), HttpError) << threshold;
  EXPECT_THROW(asked_result_in({{"head", 1}}), HttpError);
}

}  // namespace
}  // namespace cytra::app
