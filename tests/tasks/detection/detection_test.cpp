#include <cmath>

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/optim/adam.h>

#include "base/error.h"
#include "config/registry.h"
#include "data/loader/batch.h"
#include "data/sample/sample.h"
#include "io/annotations/annotations.h"
#include "io/annotations/paint.h"
#include "nn/detection_model.h"
#include "report/findings.h"
#include "tasks/detection/objects.h"
#include "tests/support/message_of.h"
#include "training/task.h"

namespace cytra {
namespace {

constexpr const char* kSmallFcos =
    "{_target_: FCOS, filters: [8, 16, 16], width: 32, num_convs: 1}";

std::shared_ptr<training::Task> make_detection(const std::string& more = "",
                                               const std::string& model = kSmallFcos) {
  return make<training::Task>("{_target_: DetectionTask, " + more + "model: " + model + "}");
}

/// Two objects, of 12x10 and 9x14 pixels, and a sliver.
at::Tensor detection_labels() {
  at::Tensor labels = at::zeros({1, 48, 64});
  labels.slice(1, 4, 14).slice(2, 6, 18).fill_(7);
  labels.slice(1, 20, 34).slice(2, 40, 49).fill_(3);
  labels.slice(1, 40, 48).slice(2, 63, 64).fill_(9);
  return labels;
}

data::Sample detection_sample() {
  data::Sample sample;
  sample.id = "raw_1.tif";
  sample.sources["instances"].path = "labels_1.tif";
  const at::Tensor labels = detection_labels();
  sample.tensors = {{"raw", labels.gt(0).to(at::kFloat)}, {"instances", labels}};
  return sample;
}

TEST(DetectionTask, BoxesAreThoseOfTheLabels) {
  tasks::ObjectBoxes objects;
  const ops::Boxes found = objects.of(detection_labels(), {});
  EXPECT_TRUE(at::equal(
      found.corners, at::tensor({40.F, 20.F, 49.F, 34.F, 6.F, 4.F, 18.F, 14.F}).reshape({2, 4})));
  EXPECT_TRUE(at::equal(found.classes, at::zeros({2}, at::kLong)));
  objects.min_size = 1;
  EXPECT_EQ(objects.of(detection_labels(), {}).corners.size(0), 3);
  EXPECT_EQ(objects.of(at::zeros({1, 8, 8}), {}).corners.sizes(), at::IntArrayRef({0, 4}));
}

TEST(DetectionTask, AnObjectHasTheCommonestClassInIt) {
  tasks::ObjectBoxes objects;
  objects.num_classes = 2;
  at::Tensor classes = detection_labels().gt(0).to(at::kFloat);
  classes.slice(1, 20, 34).slice(2, 42, 49).fill_(2);  // of 9 columns 7
  const ops::Boxes found = objects.of(detection_labels(), classes);
  EXPECT_TRUE(at::equal(found.classes, at::tensor({1, 0}, at::kLong)));
  classes.slice(2, 40, 49).fill_(0);
  EXPECT_EQ(objects.of(detection_labels(), classes).corners.size(0), 1);
  EXPECT_NE(message_of<DataError>([&] {
              objects.of(detection_labels(), classes + 4);
            }).find("expected 0 for none, 1 to 2"),
            std::string::npos);
}

TEST(DetectionTask, ObjectsOfVolumesHaveBoxesInThem) {
  tasks::ObjectBoxes objects;
  objects.spatial_dims = 3;
  const at::Tensor labels = at::zeros({1, 6, 8, 10}), classes = at::zeros({1, 6, 8, 10});
  labels.slice(1, 1, 4).slice(2, 2, 5).slice(3, 3, 9).fill_(1);
  labels.slice(1, 5, 6).slice(2, 0, 4).slice(3, 0, 4).fill_(2);  // narrower than min_size
  classes.fill_(1);
  const ops::Boxes found = objects.of(labels, classes);
  ASSERT_EQ(found.corners.sizes(), at::IntArrayRef({1, 6}));
  const at::Tensor expected = at::tensor({3., 2., 1., 9., 5., 4.}, at::kFloat);  // x y z x y z
  EXPECT_TRUE(at::equal(found.corners[0], expected));
}

/// Boxes that people drew: those that lie over each other are in layers, their class in the number.
TEST(DetectionTask, BoxesMayOverlapAndSayTheirClass) {
  tasks::ObjectBoxes objects;
  objects.num_classes = 2;
  at::Tensor layers = at::zeros({2, 48, 64}, at::kInt);
  layers[0].slice(0, 4, 14).slice(1, 6, 18).fill_(2 * io::box_class(2) + 1);
  layers[1].slice(0, 10, 34).slice(1, 6, 49).fill_(1 * io::box_class(2) + 1);
  const ops::Boxes found = objects.of(layers, {});
  EXPECT_TRUE(at::equal(found.corners,
                        at::tensor({6.F, 4.F, 18.F, 14.F, 6.F, 10.F, 49.F, 34.F}).reshape({2, 4})));
  EXPECT_TRUE(at::equal(found.classes, at::tensor({1, 0}, at::kLong)));
}

TEST(DetectionTask, LearnsToFindObjects) {
  at::manual_seed(0);
  const auto task = make_detection();
  Rng rng(0);
  data::Sample sample = detection_sample();
  data::Batch whole, batch;
  whole.tensors = {{"raw", sample.at("raw").unsqueeze(0)},
                   {"instances", sample.at("instances").unsqueeze(0)}};
  task->sample_transform()->apply(sample, rng);
  batch.tensors = {{"raw", sample.at("raw").unsqueeze(0)},
                   {"instances", sample.at("instances").unsqueeze(0)}};
  torch::optim::Adam optimizer(task->model().parameters(), 5e-3);
  for (int step = 0; step < 60; ++step) {
    optimizer.zero_grad();
    task->training_step(batch).backward();
    optimizer.step();
  }
  const at::NoGradGuard no_grad;
  task->model().eval();
  task->validation_step(whole);
  const auto preview = task->preview(whole);
  EXPECT_EQ(preview.at("target").sum().item<float>(), 2 * (12 + 10) - 4 + 2 * (9 + 14) - 4);
  EXPECT_GT(preview.at("prediction").max().item<float>(), 0.3);
  const at::Tensor target = task->preview_input(batch).at("target");
  EXPECT_TRUE(at::equal(target, preview.at("target"))) << "of the levels of a training batch";
  const report::Findings found = task->findings();
  const auto& [name, curve] = found.precision_recall.at(0);
  EXPECT_EQ(name, "objects, IoU 0.5");
  EXPECT_EQ(curve.at(0), std::pair(0.5, 1.0)) << "the best is one of two objects";
  EXPECT_EQ(curve.at(1), std::pair(1.0, 1.0));
  const auto results = task->validation_end();
  EXPECT_EQ(found.all.metrics, results);
  EXPECT_GT(results.at("map_50"), 0.99);
  EXPECT_TRUE(std::isfinite(results.at("loss")));
  EXPECT_TRUE(std::isnan(task->validation_end().at("map")));  // begins afresh
}

TEST(DetectionTask, NumbersThatFloatDoesNotHoldStayApart) {
  const auto task = make_detection();
  data::Sample sample = detection_sample();
  const at::Tensor labels = detection_labels().to(at::kInt);
  sample.tensors["instances"] = at::where(labels.gt(0), labels + (1 << 30), labels);
  Rng rng(0);
  task->validation_transform()->apply(sample, rng);
  const ops::Boxes found = tasks::ObjectBoxes().of(sample.at("instances"), {});
  EXPECT_EQ(found.corners.size(0), 2);
}

TEST(DetectionTask, AValidationWithoutObjectsIsToldOnce) {
  const auto task = make_detection();
  data::Sample sample = detection_sample();
  sample.tensors["instances"].zero_();
  const auto said = [&] {
    testing::internal::CaptureStderr();
    task->validation_step(data::collate({sample}));
    EXPECT_TRUE(std::isnan(task->validation_end().at("map")));
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_NE(said().find("'instances' is 0 everywhere"), std::string::npos);
  EXPECT_EQ(said(), "");
}

TEST(DetectionTask, SaysWhatDoesNotFit) {
  EXPECT_NE(message_of<ConfigError>([] {
              make_detection(
                  "",
                  "{_target_: DynUNet, in_channels: 1, out_channels: 6, kernel_size: "
                  "[3, 3], strides: [1, 2], upsample_kernel_size: [2], filters: [2, 4]}");
            }).find("expected model=fcos"),
            std::string::npos);
  tasks::ObjectBoxes without_classes;
  without_classes.num_classes = 2;
  EXPECT_NE(message_of<DataError>([&] {
              without_classes.of(detection_labels(), {});
            }).find("task.class_key"),
            std::string::npos);
  EXPECT_NE(message_of<ConfigError>([] {
              make_detection("class_names: [a], ", "{_target_: FCOS, num_classes: 2}");
            }).find("class_names: 1 names, expected num_classes=2"),
            std::string::npos);
  const auto task = make_detection();
  Rng rng(0);
  data::Sample sample = detection_sample();
  sample.tensors["instances"] += 0.5;
  EXPECT_EQ(message_of<DataError>([&] {
              task->validation_transform()->apply(sample, rng);
            }).rfind("labels_1.tif: labels with fractions", 0),
            0U);
  sample.tensors["instances"] = at::zeros({1, 8, 8});
  EXPECT_NE(message_of<DataError>([&] {
              task->validation_transform()->apply(sample, rng);
            }).find("labels_1.tif: (1,8,8)"),
            std::string::npos);
}

}  // namespace
}  // namespace cytra
