#include "tasks/result_scores.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "config/options.h"
#include "data/sample/sample.h"

namespace cytra {
namespace {

data::Sample scored_sample(const at::Tensor& target, const at::Tensor& mask = {}) {
  data::Sample sample;
  sample.id = "raw.tif";
  sample.tensors = {{"raw", at::zeros_like(target)}, {"seg", target}};
  if (mask.defined()) sample.tensors["roi"] = mask;
  return sample;
}

TEST(ResultScores, ObjectsThatAreNotKnownDoNotCount) {
  tasks::ResultScores scores(
      config::parse_yaml("{_target_: InstanceTask, ignore_index: 9, decoder: {_target_: "
                         "InstanceDecoder}, metrics: {f1: {_target_: ObjectF1}}}",
                         "test"),
      3);
  at::Tensor truth = at::zeros({1, 16, 16});
  truth.slice(1, 2, 6).slice(2, 2, 6).fill_(1);
  truth.slice(1, 0, 16).slice(2, 9, 16).fill_(9);  // nobody labelled this side
  at::Tensor found = at::where(truth.eq(9), 0, truth);
  found.slice(1, 10, 14).slice(2, 10, 14).fill_(2);  // an object there
  data::Sample sample = scored_sample(truth);
  scores.update(found, scores.target_of(sample, "seg", "raw"), {});
  EXPECT_EQ(scores.compute().at("object_f1"), 1);
}

TEST(ResultScores, VoxelsOutsideOfTheMaskDoNotCount) {
  const at::Tensor mask = at::zeros({1, 8, 8});
  mask.slice(2, 0, 4).fill_(1);
  const at::Tensor truth = at::zeros({1, 8, 8});
  truth.slice(1, 0, 4).fill_(1);
  at::Tensor found = truth.clone();
  found.slice(2, 4, 8).fill_(0);  // wrong, but outside
  for (const std::string task :
       {"{_target_: SegmentationTask, num_classes: 1, mask_key: roi}",
        "{_target_: RegressionTask, mask_key: roi, decoder: {_target_: RegressionDecoder}, "
        "metrics: {mae: {_target_: MAEMetric}}}"}) {
    tasks::ResultScores scores(config::parse_yaml(task, "test"), 1);
    data::Sample sample = scored_sample(truth.clone(), mask);
    scores.update(found, scores.target_of(sample, "seg", "raw"), {});
    const auto values = scores.compute();
    EXPECT_EQ(values.count("dice") ? values.at("dice") : 1 - values.at("mae"), 1) << task;
  }
}

}  // namespace
}  // namespace cytra
