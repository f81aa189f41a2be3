#include "data/survey/check_targets.h"

#include <random>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "data/survey/target_facts.h"

namespace cytra {
namespace {
using data::TargetMeaning;
using Kind = TargetMeaning::Kind;

/// Squares of 6 x 6 in an image of 48 x 48, (1,48,48): the first has `first`, each next `step`
/// more.
at::Tensor squares(double first, double step, double background = 0) {
  at::Tensor image = at::full({1, 48, 48}, background);
  for (int64_t i = 0; i < 9; ++i) {
    const int64_t y = 4 + (i / 3) * 15, x = 4 + (i % 3) * 15;
    image.slice(1, y, y + 6).slice(2, x, x + 6).fill_(first + step * static_cast<double>(i));
  }
  return image;
}

/// Normal, the same at each call.
at::Tensor noise(double deviation) {
  std::mt19937 random(7);
  at::Tensor image = at::empty({1, 48, 48});
  float* values = image.mutable_data_ptr<float>();
  for (int64_t i = 0; i < image.numel(); ++i) {
    double sum = -6;
    for (int k = 0; k < 12; ++k) sum += static_cast<double>(random()) / 4294967296.0;
    values[i] = static_cast<float>(sum * deviation);
  }
  return image;
}

std::string judged(const TargetMeaning& meaning,
                   const at::Tensor& target,
                   const at::Tensor& image = noise(1),
                   bool are_all = true,
                   const std::string& split = "train") {
  const data::TargetFacts facts = data::look_at_target(target, image, meaning.kind != Kind::values);
  std::vector<std::string> lines;
  for (const auto& one : data::check_targets(meaning, split, {facts, facts}, are_all))
    lines.push_back(one.text + (one.ends_training ? " (ends)" : ""));
  return join(lines, "\n");
}

TargetMeaning meaning_of(Kind kind, int64_t num_classes = 1) {
  TargetMeaning meaning;
  meaning.kind = kind;
  meaning.key = "seg";
  meaning.image_key = "raw";
  meaning.num_classes = num_classes;
  return meaning;
}

void expect_told(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts)
    EXPECT_NE(text.find(part), std::string::npos) << part << " is not in: " << text;
}

// Of a large target some rows at a time are looked at: what goes on across them is one region.
TEST(TargetJudge, ALargeTargetIsLookedAtByRows) {
  const at::Tensor target = at::zeros({1, 4400, 4096}, at::kByte);
  for (int64_t x = 0; x < 4096; x += 64) target.slice(2, x, x + 16).fill_(1 + x / 2048);
  target.slice(1, 3900, 4000).zero_();  // each bar is two
  const data::TargetFacts facts = data::look_at_target(target, at::zeros({1}), true);
  EXPECT_EQ(facts.regions, 2 * 64);
  EXPECT_EQ(data::look_at_target(target.unsqueeze(1), at::zeros({1}), true).regions, 2 * 64);
  EXPECT_EQ(facts.counts,
            (std::map<double, int64_t>{
                {0, 4400 * 4096 - 2 * 32 * 16 * 4300}, {1, 32 * 16 * 4300}, {2, 32 * 16 * 4300}}));
  EXPECT_TRUE(facts.is_whole);
  EXPECT_EQ(facts.alike, 1);
  const at::Tensor pixels = (at::arange(4400 * 4096).remainder(251) + 1).view({1, 4400, 4096});
  EXPECT_TRUE(
      data::look_at_target(pixels.to(at::kByte), pixels.to(at::kFloat) / 3, false).is_image);
}

TEST(TargetJudge, WhatIsMeantRaisesNoAlarm) {
  const at::Tensor mask = squares(1, 0), objects = squares(1, 1);
  for (const at::Tensor& target : {mask, mask * 255, objects, squares(1, 40)})
    EXPECT_EQ(judged(meaning_of(Kind::mask), target), "");
  EXPECT_EQ(judged(meaning_of(Kind::classes, 2), mask), "");
  EXPECT_EQ(judged(meaning_of(Kind::classes, 10), objects), "") << "organs";
  EXPECT_EQ(judged(meaning_of(Kind::masks, 3), at::cat({mask, mask, 1 - mask})), "");
  EXPECT_EQ(judged(meaning_of(Kind::objects), objects), "");
  EXPECT_EQ(judged(meaning_of(Kind::objects), squares(900, 37)), "");
  EXPECT_EQ(judged(meaning_of(Kind::objects), squares(1, 1, 100)), "") << "objects fill the image";
  EXPECT_EQ(judged(meaning_of(Kind::values), noise(3).square()), "");
  EXPECT_EQ(judged(meaning_of(Kind::values), mask), "");
  EXPECT_EQ(judged(meaning_of(Kind::values), noise(1) + squares(2, 0)), "");
}

TEST(TargetJudge, NoBackground) {
  expect_told(judged(meaning_of(Kind::mask), squares(2, 0, 1)),
              {"train seg", "no background", "1, 2", " target_values=[1,2]"});
  expect_told(judged(meaning_of(Kind::mask), squares(255, 0, 128)), {" target_values=[128,255]"});
  expect_told(judged(meaning_of(Kind::mask), squares(255, 0, 255)), {"every value is 255"});
  at::Tensor three = squares(2, 0, 1);
  three[0][0].fill_(3);
  expect_told(judged(meaning_of(Kind::mask), three), {"num_classes=3 target_values=[1,2,3]"});
  expect_told(judged(meaning_of(Kind::classes, 3), squares(2, 0, 1)),
              {"num_classes=2 target_values=[1,2]"});
  expect_told(judged(meaning_of(Kind::objects), squares(2, 0, 1)), {"no background", "1, 2"});
  TargetMeaning told = meaning_of(Kind::mask);
  told.target_values = {1, 2};
  EXPECT_EQ(judged(told, squares(2, 0, 1)), "");
  told.target_values.clear();
  told.head = "cells";
  expect_told(judged(told, squares(2, 0, 1)), {"+task.heads.cells.target_values=[1,2]"});
  told = meaning_of(Kind::mask);  // scribbles
  told.target_values = {1, 2};
  told.ignore_index = 0;
  at::Tensor scribbles = squares(1, 0);
  scribbles[0][0].fill_(2);
  EXPECT_EQ(judged(told, scribbles), "");
}

TEST(TargetJudge, NoiseOfLossyFormats) {
  const at::Tensor lossy = (squares(255, 0) + noise(6)).clamp(0, 255).round();
  expect_told(judged(meaning_of(Kind::mask), lossy), {"JPEG", "task.target_threshold=127"});
  expect_told(judged(meaning_of(Kind::masks, 1), lossy), {"task.target_threshold=127"});
  expect_told(judged(meaning_of(Kind::classes, 2), lossy), {"num_classes=1 task.target_threshold"});
  expect_told(judged(meaning_of(Kind::objects), lossy), {"JPEG", "PNG"});
  TargetMeaning told = meaning_of(Kind::mask);
  told.threshold = 127;
  EXPECT_EQ(judged(told, lossy), "");
  expect_told(judged(told, lossy * 0), {"no foreground"});
  const at::Tensor intensities = (noise(30) + 120).clamp(0, 255).round();
  expect_told(judged(meaning_of(Kind::mask), intensities), {"intensities", "im2im/labelfree"});
}

TEST(TargetJudge, TheImageItself) {
  for (const Kind kind : {Kind::mask, Kind::classes, Kind::objects, Kind::values})
    expect_told(judged(meaning_of(kind, 2), noise(1) * 20 + 100), {"the image itself"});
}

TEST(TargetJudge, Colours) {
  const at::Tensor red = squares(255, 0), green = squares(0, 0), blue = green;
  const at::Tensor rgb = at::cat({red, green, blue});
  expect_told(judged(meaning_of(Kind::mask), rgb),
              {"colours", "\"task.colours=['#000000','#ff0000']\""});
  at::Tensor three = rgb.clone();
  three.slice(1, 0, 2).fill_(255);
  expect_told(judged(meaning_of(Kind::mask), three),
              {"num_classes=3 \"task.colours=['#000000','#ff0000','#ffffff']\""});
  expect_told(judged(meaning_of(Kind::objects), rgb), {"colours", "object numbers"});
  EXPECT_EQ(judged(meaning_of(Kind::masks, 3), rgb), "") << "a mask in each channel";
  const at::Tensor alpha = at::full({1, 48, 48}, 255.);
  for (const at::Tensor& grey :
       {at::cat({red, red, red}), at::cat({red, red, red, alpha}), at::cat({red, alpha})})
    EXPECT_TRUE(data::without_equal_channels(grey).equal(red));
  EXPECT_TRUE(data::without_equal_channels(rgb).equal(rgb));
  EXPECT_EQ(data::without_equal_channels(at::cat({alpha, red})).size(0), 2) << "alpha says it";
  // Of 16 bits: torch has no minimum of them
  const at::Tensor both = at::cat({alpha, red}).to(at::kUInt16);
  EXPECT_EQ(data::without_equal_channels(both).size(0), 2);
  EXPECT_EQ(data::without_equal_channels(at::cat({red, red, red}).to(at::kUInt16)).size(0), 1);
}

TEST(TargetJudge, ClassesAndObjects) {
  const at::Tensor mask = squares(1, 0), objects = squares(1, 1);
  expect_told(judged(meaning_of(Kind::objects), mask),
              {"in 18 separate regions", "experiment=im2im/segmentation num_classes=1"});
  expect_told(judged(meaning_of(Kind::classes, 3), objects), {"im2im/instance"});
}

TEST(TargetJudge, Gaps) {
  at::Tensor target = squares(5, 0);
  target[0][0].fill_(7);
  expect_told(judged(meaning_of(Kind::classes, 3), target),
              {"5, 7 are no class", "num_classes=3 target_values=[0,5,7]"});
  at::Tensor few = squares(1, 0);
  few[0][0].fill_(3);
  expect_told(judged(meaning_of(Kind::classes, 4), few), {"num_classes=3 target_values=[0,1,3]"});
  EXPECT_EQ(judged(meaning_of(Kind::classes, 4), few, noise(1), /*are_all=*/false), "");
  few[0][0].fill_(255);
  few[0][1].fill_(2);
  expect_told(judged(meaning_of(Kind::classes, 3), few), {"ignore_index=255"});
}

TEST(TargetJudge, NothingToLearn) {
  const at::Tensor empty = at::zeros({1, 48, 48});
  expect_told(judged(meaning_of(Kind::mask), empty), {"no foreground", "nothing to learn"});
  expect_told(judged(meaning_of(Kind::classes, 3), empty), {"no foreground"});
  expect_told(judged(meaning_of(Kind::masks, 1), empty), {"no foreground"});
  expect_told(judged(meaning_of(Kind::objects), empty), {"no object", "nothing to learn"});
  expect_told(judged(meaning_of(Kind::values), empty + 4), {"every value is 4"});
  expect_told(judged(meaning_of(Kind::objects), empty, noise(1), true, "valid"),
              {"valid seg", "no object", "nan"});
  EXPECT_EQ(judged(meaning_of(Kind::mask), empty, noise(1), /*are_all=*/false), "")
      << "the others may have some";
}

TEST(TargetJudge, ATrainingEndsWhereAllWouldBeForeground) {
  at::Tensor three = squares(2, 0, 1);
  three[0][0].fill_(3);
  for (const at::Tensor& target : {squares(2, 0, 1), squares(255, 0, 128), three, squares(7, 0, 2)})
    expect_told(judged(meaning_of(Kind::mask), target), {"(ends)", "task.target_threshold=0"});
  EXPECT_EQ(judged(meaning_of(Kind::mask), three, noise(1), true, "valid").find("(ends)"),
            std::string::npos);
  expect_told(judged(meaning_of(Kind::objects), squares(2, 0, 1)), {"(ends)", "object_values=[2]"});
  at::Tensor halves = at::ones({1, 48, 48});
  halves.slice(1, 20).fill_(2);
  EXPECT_EQ(judged(meaning_of(Kind::objects), halves).find("(ends)"), std::string::npos)
      << "two objects may fill an image";
  EXPECT_EQ(judged(meaning_of(Kind::classes, 4), three).find("(ends)"), std::string::npos);
  TargetMeaning told = meaning_of(Kind::mask);
  told.threshold = 0;
  EXPECT_EQ(judged(told, three), "");
}

TEST(TargetJudge, BackgroundThatIsNotZeroIsNotLeftOut) {
  const at::Tensor objects = squares(1, 1, -1), mask = squares(1, 0, -1);
  expect_told(judged(meaning_of(Kind::mask), mask), {"target_values=[-1,1]", "(ends)"});
  for (const double background : {-1., 255.}) {
    TargetMeaning ignored = meaning_of(Kind::mask);
    ignored.ignore_index = static_cast<int64_t>(background);
    expect_told(judged(ignored, squares(1, 0, background)),
                {"leaves no background", background < 0 ? "target_values=[-1,1]" : "[255,1]"});
    ignored.kind = Kind::objects;
    expect_told(
        judged(ignored, squares(1, 1, background)),
        {"leaves no background", background < 0 ? "task.background=-1" : "task.background=255"});
  }
  at::Tensor classes = squares(1, 0);
  classes[0][0].fill_(2);
  classes[0][1].fill_(-1);
  expect_told(judged(meaning_of(Kind::classes, 3), classes),
              {"ignore_index=-1", "num_classes=4 target_values=[-1,0,1,2]"});
  classes.masked_fill_(classes.eq(0), -1);
  expect_told(judged(meaning_of(Kind::classes, 3), classes),
              {"num_classes=3 target_values=[-1,1,2]"});
}

TEST(TargetJudge, ATrainingEndsWhereSeveralMasksHaveNoBackground) {
  const at::Tensor two = at::cat({squares(2, 0, 1), squares(1, 0, 2)});
  expect_told(judged(meaning_of(Kind::masks, 2), two),
              {"no background (0)", ": target_values=[1,2]", "(ends)"});
  at::Tensor three = two.clone();
  three[1][0].fill_(3);
  expect_told(judged(meaning_of(Kind::masks, 2), three),
              {"MapLabelValued, keys: [seg], orig_labels: [1]", "(ends)"});
  expect_told(judged(meaning_of(Kind::masks, 2), at::ones_like(two)), {"every value is 1"});
  TargetMeaning told = meaning_of(Kind::masks, 2);
  told.ignore_index = 1;
  expect_told(judged(told, two), {"leaves no background", ", target_values=[1,2]", "(ends)"});
  told.target_values = {1, 2};
  told.ignore_index = 0;
  EXPECT_EQ(judged(told, two), "");
}

TEST(TargetJudge, ABackgroundThatIsNotZeroKeepsClassesThatAreNotSeen) {
  at::Tensor some = squares(2, 0, -1);
  TargetMeaning meaning = meaning_of(Kind::classes, 4);
  const auto sampled = [&] { return judged(meaning, some, noise(1), /*are_all=*/false); };
  expect_told(sampled(), {"no background", "num_classes=5 target_values=[-1,0,1,2,3]"});
  expect_told(judged(meaning, some), {"num_classes=4 target_values=[-1,1,2,3]"});
  meaning.ignore_index = -1;
  expect_told(sampled(), {"leaves no background", "num_classes=5 target_values=[-1,0,1,2,3]"});
  meaning.ignore_index = 255;
  expect_told(sampled(), {"num_classes=5 target_values=[-1,0,1,2,3]"});
}

TEST(TargetJudge, OneImageAmongOthersThatIsItsTarget) {
  const at::Tensor image = noise(1) * 20 + 100;
  std::vector<data::TargetFacts> facts{data::look_at_target(squares(1, 0), image, true),
                                       data::look_at_target(image, image, true)};
  facts[1].file = "b.png";
  const auto found = data::check_targets(meaning_of(Kind::mask), "train", facts, true);
  ASSERT_FALSE(found.empty());
  expect_told(found[0].text, {"the image itself in 1 of 2 images, as b.png"});
}

}  // namespace
}  // namespace cytra
