#include "app/serve/models/served_model.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace cytra::app {
namespace {

TEST(ResultWish, IsReadFromJson) {
  const ResultWish wish = wish_in({{"head", "cells"}, {"threshold", 0.25}, {"other", 1}});
  EXPECT_EQ(wish.head, "cells");
  EXPECT_EQ(wish.threshold, 0.25);
  EXPECT_EQ(wish_in(Json::object()).threshold, std::nullopt);
  for (const Json& threshold : {Json(-0.1), Json(1.5), Json("0.5"), Json()})
    EXPECT_THROW(wish_in({{"threshold", threshold}}), HttpError) << threshold;
  EXPECT_THROW(wish_in({{"head", 1}}), HttpError);
}

}  // namespace
}  // namespace cytra::app
