#include "tasks/class_labels.h"

#include <cmath>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "data/sample/sample.h"
#include "tasks/metric_set.h"
#include "tests/support/message_of.h"

namespace cytra {
namespace {

using tasks::ClassLabels;

const ClassLabels kMask{1, false}, kClasses{3, false}, kMasks{3, true};

at::Tensor image(const std::vector<double>& values, int64_t channels = 1) {
  return at::tensor(values, at::kFloat).view({channels, 1, -1});
}

void expect_target_refused(const ClassLabels& labels,
                           const at::Tensor& values,
                           const std::vector<std::string>& parts) {
  const std::string message = message_of<DataError>([&] { labels.target(values); });
  for (const std::string& part : parts)
    EXPECT_NE(message.find(part), std::string::npos) << part << " is not in: " << message;
}

TEST(ClassLabels, AMaskIsAllThatIsNot0) {
  EXPECT_TRUE(kMask.target(image({0, 255, 0, 255})).equal(image({0, 1, 0, 1})));
  EXPECT_TRUE(kMask.target(image({0, 7, 70000, 1})).equal(image({0, 1, 1, 1})));
  EXPECT_TRUE(kMasks.target(image({0, 255, 2, 0, 1, 1}, 3)).equal(image({0, 1, 1, 0, 1, 1}, 3)));
  const at::Tensor values = image({0, 255});
  kMask.target(values);
  EXPECT_TRUE(values.equal(image({0, 255}))) << "a cache may hold the values";
}

TEST(ClassLabels, ClassesKeepTheirNumbers) {
  const at::Tensor numbers = image({0, 1, 2, 1});
  EXPECT_TRUE(kClasses.target(numbers.to(at::kByte)).equal(numbers));
}

TEST(ClassLabels, RefusesWhatIsNoLabel) {
  expect_target_refused(kClasses, image({0, 3, 2, 255}), {"2 of 4 values", "3", "255", "0..2"});
  expect_target_refused(kClasses, image({0, 0.5, 1, 1}), {"1 of 4 values", "0.5", "num_classes=3"});
  expect_target_refused(kClasses, image({0, -1}), {"-1"});
  expect_target_refused(kMask, image({0.25, 0.5, 1}), {"2 of 3 values", "0.25", "whole numbers"});
  expect_target_refused(kMask, image({NAN, 1}), {"nan"});
  expect_target_refused(kMask, image({INFINITY, 1}), {"inf"});
  expect_target_refused(kMasks, image({0, 0.5, 1}, 3), {"0.5"});
}

TEST(ClassLabels, RefusesOtherNumbersOfChannels) {
  expect_target_refused(
      kMask, image({0, 1, 0}, 3), {"3 channels", "num_classes=3 multilabel=true"});
  expect_target_refused(kClasses, image({0, 1, 0}, 3), {"one channel", "multilabel=true"});
  expect_target_refused(kMasks, image({0, 1}), {"1 channels", "takes 3"});
}

TEST(ClassLabels, NamesTheFileOfATarget) {
  data::Sample sample;
  sample.id = "cells/raw_07.tif";
  sample.sources["seg"].path = "cells/seg_07.tif";
  sample.tensors = {{"raw", image({0, 1})}, {"seg", image({0, 7})}};
  const auto read = [&] { kClasses.target_of(sample, "seg", "raw"); };
  const std::string message = message_of<DataError>(read);
  EXPECT_EQ(message.rfind("cells/seg_07.tif: ", 0), 0U) << message;
  sample.tensors["seg"] = image({0, 1, 2});
  EXPECT_NE(message_of<DataError>(read).find("(1,3), its image has (1,2)"), std::string::npos)
      << message_of<DataError>(read);
}

TEST(ClassLabels, OneHotAndFlattened) {
  const at::Tensor numbers = at::tensor({0.0, 2.0}).view({1, 1, 1, 2});
  const at::Tensor channels = kClasses.one_hot(numbers);
  EXPECT_EQ(channels.sizes(), (std::vector<int64_t>{1, 3, 1, 2}));
  EXPECT_TRUE(channels.to(at::kLong).argmax(1, true).equal(numbers.to(at::kLong)));
  EXPECT_TRUE(kClasses.flattened(numbers).equal(numbers));
  const at::Tensor masks = at::tensor({1, 0, 1, 0, 0, 0}).view({1, 3, 1, 2});
  EXPECT_TRUE(kMasks.flattened(masks).equal(at::tensor({2, 0}, at::kLong).view({1, 1, 1, 2})));
}

TEST(ClassLabels, ScoresByClassWithoutTheBackground) {
  using Input = metrics::Metric::Input;
  tasks::MetricSet metrics(kClasses.metrics({}), {Input::masks}, 3);
  const at::Tensor truth = at::tensor({0.0, 1.0, 1.0, 0.0}).view({1, 1, 2, 2}),
                   guess = at::tensor({0.0, 1.0, 0.0, 0.0}).view({1, 1, 2, 2});
  metrics.update([&](Input input) { return kClasses.compared(guess, truth, input); });
  const auto scores = metrics.compute();
  ASSERT_EQ(scores.size(), 3U);
  EXPECT_DOUBLE_EQ(scores.at("dice"), 2.0 / 3);
  EXPECT_DOUBLE_EQ(scores.at("dice_class_1"), 2.0 / 3);
  EXPECT_TRUE(std::isnan(scores.at("dice_class_2")));
  const at::Tensor one = kClasses.count(truth), other = kClasses.count(at::zeros_like(truth));
  EXPECT_EQ(kClasses.what_is_missing(one), "no target of 1 images has class 2");
  EXPECT_EQ(kClasses.what_is_missing(one + other),
            "1 of 2 images have a target without foreground and do not count in dice; no target of "
            "2 images has class 2");
}

TEST(ClassLabels, ObjectsAreWhatTouches) {
  const at::Tensor guess = image({1, 1, 0, 1, 0, 2, 2, 1}).unsqueeze(0);
  const auto compared = kClasses.compared(guess, guess, metrics::Metric::Input::objects);
  EXPECT_EQ(compared.prediction.max().item<int64_t>(), 4);
  EXPECT_EQ(compared.truth.sizes(), guess.sizes());
}

TEST(ClassLabels, WhatIsIgnoredDoesNotCount) {
  ClassLabels labels = kClasses;
  labels.ignore_index = 255;
  const at::Tensor target = labels.target(image({0, 255, 2, 1})).unsqueeze(0);
  EXPECT_TRUE(target.equal(image({0, -1, 2, 1}).unsqueeze(0)));
  EXPECT_TRUE(labels.known(target).equal(image({1, 0, 1, 1}).ne(0).unsqueeze(0)));
  EXPECT_EQ(labels.one_hot(target).sum().item<int64_t>(), 3);
  EXPECT_TRUE(labels.flattened(target).equal(image({0, 0, 2, 1}).unsqueeze(0)));
  expect_target_refused(kClasses, image({0, 255}), {"ignore_index"});

  ClassLabels masks = kMasks;
  masks.ignore_index = 2;
  const at::Tensor overlapping = masks.target(image({0, 1, 2, 1, 1, 0}, 3)).unsqueeze(0);
  EXPECT_TRUE(overlapping.equal(image({0, 1, -1, 1, 1, 0}, 3).unsqueeze(0)));
  EXPECT_TRUE(masks.known(overlapping).equal(image({0, 1}).ne(0).unsqueeze(0)));
  EXPECT_EQ(masks.one_hot(overlapping).min().item<double>(), 0);
}

TEST(ClassLabels, ScribblesAreAMask) {  // 0 unlabelled, 1 background, 2 nuclei
  ClassLabels scribbles;
  scribbles.ignore_index = 0;
  scribbles.target_values = {1, 2};
  EXPECT_TRUE(scribbles.target(image({0, 1, 2, 1})).equal(image({-1, 0, 1, 0})));
  expect_target_refused(scribbles, image({0, 1, 7}), {"1 of 3 values", "[1, 2]", "7"});
  scribbles.target_values = {1, 2, 3};
  EXPECT_THROW(scribbles.check(), ConfigError);
}

TEST(ClassLabels, GreyAndLossyMasks) {
  ClassLabels lossy;
  lossy.target_threshold = 127;
  EXPECT_TRUE(lossy.target(image({0, 3, 127, 128, 251})).equal(image({0, 0, 0, 1, 1})));
  EXPECT_TRUE(lossy.target(image({0, 200, 0, 200, 0, 200}, 3)).equal(image({0, 1})))
      << "grey in three channels";
  lossy.ignore_index = 251;
  EXPECT_TRUE(lossy.target(image({0, 251, 128})).equal(image({0, -1, 1})));
  lossy.num_classes = 3;
  EXPECT_THROW(lossy.check(), ConfigError);
  lossy.num_classes = 1;
  lossy.target_values = {0, 255};
  EXPECT_THROW(lossy.check(), ConfigError);
}

TEST(ClassLabels, Colours) {
  ClassLabels labels;
  labels.num_classes = 3;
  labels.colours = {"#000000", "#FF0000", "#ff8000"};
  labels.check();
  const at::Tensor rgb = image({0, 255, 255, 0, 0, 128, 0, 0, 0}, 3);
  EXPECT_TRUE(labels.target(rgb).equal(image({0, 1, 2})));
  EXPECT_TRUE(
      labels.target(at::cat({rgb, at::full_like(rgb.slice(0, 0, 1), 255)})).equal(image({0, 1, 2})))
      << "with alpha";
  expect_target_refused(labels, image({0, 1, 0, 2, 0, 3}, 3), {"1 of 2 pixels", "#010203"});
  expect_target_refused(labels, image({0, 1}), {"1 channels", "task.colours"});
  labels.colours.pop_back();
  EXPECT_THROW(labels.check(), ConfigError);
  labels.colours = {"#000000", "#ff0000", "red"};
  EXPECT_THROW(labels.check(), ConfigError);
}

TEST(ClassLabels, OfAConfiguration) {
  const auto labels_of = [](const std::string& yaml) {
    return tasks::class_labels_of(config::parse_yaml(yaml, "task.yaml"));
  };
  EXPECT_EQ(labels_of("{model: {}}").num_classes, 1);
  EXPECT_EQ(labels_of("{model: {out_channels: 4}}").num_classes, 4) << "before num_classes";
  EXPECT_TRUE(labels_of("{model: {out_channels: 4}}").are_exclusive());
  EXPECT_TRUE(labels_of("{num_classes: 2, multilabel: true, model: {}}").multilabel);
  const std::string message =
      message_of<ConfigError>([&] { labels_of("num_classes: 1\nmodel:\n  out_channels: 3\n"); });
  EXPECT_EQ(message.rfind("task.yaml:3:17", 0), 0U) << message;
  EXPECT_NE(message.find("num_classes=3"), std::string::npos) << message;
}

}  // namespace
}  // namespace cytra
