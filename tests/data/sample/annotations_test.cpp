// Annotations as targets: what LoadImaged makes of them, and the data sets that have them.
#include "data/sample/annotations.h"

#include <filesystem>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "data/survey/survey.h"
#include "io/annotations/paint.h"
#include "io/image.h"
#include "tasks/annotation_targets.h"
#include "tests/data/datamodule_fixture.h"
#include "tests/support/tmp_dir.h"

namespace cytra {
namespace {
namespace fs = std::filesystem;
using io::TargetKind;

const std::string kDrawn = std::string(CYTRA_SOURCE_DIR) + "/tests/golden/annotations/";

/// 48 x 40 pixels.
void write_picture(const std::string& path) {
  fs::create_directories(fs::path(path).parent_path());
  io::Image image;
  image.shape = {1, 1, 40, 48};
  image.pixels.assign(image.bytes(), 7);
  io::write_png(path, image);
}

data::Sample annotated(const std::string& image,
                       const std::string& annotations,
                       TargetKind kind,
                       const std::vector<std::string>& names = {}) {
  data::Sample sample;
  sample.id = image;
  sample.sources["raw"].path = image;
  sample.sources["seg"].path = annotations;
  std::string list;
  for (const std::string& name : names) list += name + ", ";
  Rng unused(0);
  make<data::Transform>("{_target_: LoadImaged, keys: [raw, seg], annotations: " +
                        io::kTargetKinds[static_cast<std::size_t>(kind)] +
                        (names.empty() ? "" : ", class_names: {seg: [" + list + "]}") + "}")
      ->apply(sample, unused);
  return sample;
}

TEST(AnnotationTargets, BecomeWhatTheTaskNeeds) {
  const test::TmpDir dir;
  write_picture(dir / "cells.png");
  const auto load =
      [&](const char* file, TargetKind kind, const std::vector<std::string>& names = {}) {
        return annotated(dir / "cells.png", kDrawn + file, kind, names).at("seg");
      };
  const at::Tensor instances = load("qupath.geojson", TargetKind::instances);
  EXPECT_EQ(instances.sizes(), at::IntArrayRef({1, 40, 48}));
  EXPECT_EQ(instances.max().item<float>(), 3);
  EXPECT_TRUE(at::equal(load("qupath.geojson", TargetKind::mask), instances.gt(0).to(at::kFloat)));
  const at::Tensor classes = load("qupath.geojson", TargetKind::classes, {"Stroma", "Tumor"});
  EXPECT_TRUE(at::equal(classes.eq(1), instances.eq(2)));
  EXPECT_TRUE(at::equal(classes.eq(2), instances.eq(1).logical_or(instances.eq(3))));
  const at::Tensor channels = load("qupath.geojson", TargetKind::channels, {"Stroma", "Tumor"});
  EXPECT_TRUE(at::equal(channels, at::cat({classes.eq(1), classes.eq(2)}).to(at::kFloat)));
  EXPECT_EQ(load("voc.xml", TargetKind::boxes).sizes(), at::IntArrayRef({2, 40, 48}));
}

TEST(AnnotationTargets, NeedAnImageAndATask) {
  const test::TmpDir dir;
  write_picture(dir / "cells.png");
  data::Sample sample;
  sample.sources["seg"].path = kDrawn + "voc.xml";
  Rng unused(0);
  auto load = make<data::Transform>("{_target_: LoadImaged, keys: [seg], annotations: mask}");
  EXPECT_NE(message_of([&] {
              load->apply(sample, unused);
            }).find("expected the image that they belong to"),
            std::string::npos);
  sample.sources["raw"].path = dir / "cells.png";
  load = make<data::Transform>("{_target_: LoadImaged, keys: [seg]}");
  EXPECT_NE(message_of([&] {
              load->apply(sample, unused);
            }).find("LoadImaged's `annotations`: instances, classes"),
            std::string::npos);
  EXPECT_NE(message_of([&] {
              make<data::Transform>("{_target_: LoadImaged, keys: [seg], annotations: instance}");
            }).find("'instance', expected instances"),
            std::string::npos);
}

TEST(AnnotationTargets, FollowFromTheTask) {
  const auto kind = [](const std::string& task, const std::string& key = "seg") {
    const auto targets = tasks::annotation_targets(config::parse_yaml(task, "t"));
    return targets.at(key).kind;
  };
  EXPECT_EQ(kind("{_target_: InstanceTask}"), TargetKind::instances);
  EXPECT_EQ(kind("{_target_: SegmentationTask, num_classes: 1}"), TargetKind::mask);
  EXPECT_EQ(kind("{_target_: SegmentationTask, num_classes: 3}"), TargetKind::classes);
  EXPECT_EQ(kind("{_target_: SegmentationTask, num_classes: 3, multilabel: true}"),
            TargetKind::channels);
  EXPECT_EQ(kind("{_target_: DetectionTask, y_key: boxes}", "boxes"), TargetKind::boxes);
  EXPECT_EQ(kind("{_target_: RegressionTask, mask_key: m}", "m"), TargetKind::mask);
  EXPECT_EQ(kind("{_target_: MultiTask, heads: {a: {_target_: SegmentationHead, y_key: a}}}", "a"),
            TargetKind::mask);
}

class AnnotatedSet : public ::testing::Test {
 protected:
  AnnotatedSet() {
    for (const char* name : {"a", "b", "c", "d", "e"}) {
      write_picture(dir_ / "images/" + name + ".png");
      fs::create_directories(dir_ / "annotations");
      fs::copy_file(kDrawn + "voc.xml", dir_ / "annotations/" + name + ".xml");
    }
  }
  std::shared_ptr<data::DataModule> folder() const { return make(text_ + "}"); }
  test::TmpDir dir_;
  const std::string text_ = "{_target_: FolderDatamodule, path: " + dir_.path() +
                            ", columns: [raw, seg], folders: [images, annotations]";
};

TEST_F(AnnotatedSet, LiesBesideItsImagesByName) {
  const auto items = folder()->items(data::Split::train);
  ASSERT_EQ(items.size(), 4U);
  EXPECT_EQ(items[0].sources.at("seg").path, dir_ / "annotations/a.xml");
}

TEST_F(AnnotatedSet, MayBeOneFileOfAllImages) {
  fs::remove_all(dir_ / "annotations");
  std::string images;
  for (const char* name : {"a", "b", "c", "d", "e"})
    images += std::string(images.empty() ? "" : ",") + "{\"id\":\"" + name + "\",\"file_name\":\"" +
              name + ".png\"}";
  const std::string json = "{\"images\":[" + images +
                           "],\"annotations\":[{\"image_id\":\"b\",\"category_id\":1,\"bbox\":[1,2,"
                           "3,4]}],\"categories\":[{\"id\":1,\"name\":\"cell\"}]}";
  touch(dir_ / "annotations/instances.json", json);
  const std::string path = dir_ / "annotations/instances.json";
  EXPECT_EQ(folder()->items(data::Split::train).at(1).sources.at("seg").path, path);
  const auto coco = make("{_target_: CocoDatamodule, path: " + path + "}");
  const auto items = coco->items(data::Split::train);
  ASSERT_EQ(items.size(), 4U);
  EXPECT_EQ(items[1].id, dir_ / "images/b.png");
  EXPECT_EQ(coco->items(data::Split::valid).at(0).id, dir_ / "images/e.png");
  EXPECT_EQ(annotated(items[1].id, path, TargetKind::instances).at("seg").sum().item<float>(), 12);
  EXPECT_EQ(annotated(items[0].id, path, TargetKind::instances).at("seg").sum().item<float>(), 0);
  fs::remove(dir_ / "images/e.png");
  EXPECT_NE(message_of([&] { coco->items(data::Split::train); }).find("data.image_dir"),
            std::string::npos);
  touch(dir_ / "annotations/other.json", "{}");
  EXPECT_NE(message_of([&] {
              make("{_target_: CocoDatamodule, path: " + (dir_ / "annotations/other.json") + "}")
                  ->items(data::Split::train);
            }).find("expected"),
            std::string::npos);
}

TEST_F(AnnotatedSet, GivesTheTaskTheNamesOfItsClasses) {
  config::Node data = config::parse_yaml(
      text_ + ", transforms: {train: [{_target_: LoadImaged, keys: [raw, seg]}]}}", "d");
  const auto fitted = [&](const std::string& text) {
    config::Node task = config::parse_yaml(text, "t");
    EXPECT_TRUE(tasks::fit_to_annotations(data, task));
    return task;
  };
  EXPECT_EQ(fitted("{_target_: SegmentationTask, num_classes: 1}").find_direct("class_names"),
            nullptr);
  data.find("transforms.train")->list[0].set("annotations", config::Node());
  using Names = std::vector<std::string>;
  const Names sorted{"red & white", "red cell"};
  EXPECT_EQ(fitted("{_target_: SegmentationTask, num_classes: 3}").get<Names>("class_names"),
            sorted);
  const config::Node& loader = data.at("transforms").at("train").list[0];
  EXPECT_EQ(loader.get<std::string>("annotations.seg"), "classes");
  EXPECT_EQ(loader.get<Names>("class_names.seg"), sorted);
  EXPECT_NE(message_of([&] {
              fitted("{_target_: SegmentationTask, num_classes: 4}");
            }).find("have 2 classes: red & white, red cell; set num_classes=3"),
            std::string::npos);
  EXPECT_EQ(fitted("{_target_: DetectionTask, y_key: seg, model: {num_classes: 2}, class_names: "
                   "[red cell, red & white]}")
                .get<Names>("class_names")
                .front(),
            "red cell");
}

/// One file of all images is not the same image twice.
TEST_F(AnnotatedSet, IsSurveyedAsItIsLearned) {
  const auto module = make(text_ +
                           ", transforms: {train: [{_target_: LoadImaged, keys: [raw, "
                           "seg], annotations: instances}]}}");
  const auto survey = data::survey(*module, 1, [](data::Split, int64_t, int64_t) {});
  const data::KeyFacts& facts = survey.splits.at(0).keys.at("seg");
  EXPECT_EQ(facts.broken(), 0U);
  ASSERT_EQ(facts.classes().size(), 3U);
  EXPECT_EQ(facts.classes()[1].voxels, 4U * (12 * 10 - 5 * 5));  // the later box lies on top
}

/// Boxes of one image overlap, those of another do not.
TEST_F(AnnotatedSet, MayHaveAnyNumberOfLayers) {
  touch(
      dir_ / "annotations/a.xml",
      "<annotation><object><name>red cell</name><bndbox><xmin>1</xmin><ymin>1</ymin><xmax>9</xmax>"
      "<ymax>9</ymax></bndbox></object></annotation>");
  const auto module = make(text_ +
                           ", transforms: {train: [{_target_: LoadImaged, keys: [raw, "
                           "seg], annotations: boxes}]}}");
  const auto survey = data::survey(*module, 1, [](data::Split, int64_t, int64_t) {});
  const auto& images = survey.splits.at(0).keys.at("seg").images;
  EXPECT_EQ(images.at(0).shape.front(), 1);
  EXPECT_EQ(images.at(1).shape.front(), 2);
  for (const std::string& problem : survey.problems)
    EXPECT_EQ(problem.find("channels"), std::string::npos) << problem;
}

TEST(AnnotationTargets, AnyNumberOfClassesHasBoxes) {
  const io::AnnotatedImage frame{"a.png", 1, 40, 48};
  for (const std::size_t count : {2U, 255U, 256U, 1203U, 20000U}) {
    std::vector<std::string> names;
    for (std::size_t k = 0; k < count; ++k) names.push_back("c" + std::to_string(k));
    io::Annotation box;
    box.class_name = names.back();
    box.box = {2, 3, 12, 13};
    const io::Image made = io::paint_annotations("a.json", {box}, frame, TargetKind::boxes, names);
    const auto* values = reinterpret_cast<const int32_t*>(made.pixels.data());
    const int32_t value = values[5 * 48 + 5];
    EXPECT_LT(value, 1 << 24) << "float32 holds it";
    EXPECT_EQ(value / io::box_class(static_cast<int64_t>(count)), static_cast<int64_t>(count));
  }
}

TEST_F(AnnotatedSet, AnImageIsNoTargetOfItself) {
  const auto listed = [&](const std::string& more) {
    return make(text_.substr(0, text_.find(", folders")) + ", folders: [images, images]" + more +
                "}")
        ->items(data::Split::train);
  };
  for (const char* kind : {".json", ".xml", ".geojson"}) {
    for (const char* name : {"a", "b", "c", "d"})
      touch(dir_ / "images/" + std::string(name) + kind, "{\"shapes\": []}");
    const std::string told = message_of([&] { listed(""); });
    EXPECT_NE(told.find("images/e.png: no annotations named 'e'"), std::string::npos) << told;
    for (const data::Sample& sample : listed(", on_error: skip"))
      EXPECT_NE(sample.sources.at("seg").path, sample.sources.at("raw").path);
    for (const char* name : {"a", "b", "c", "d"})
      fs::remove(dir_ / "images/" + std::string(name) + kind);
  }
  for (const char* name : {"a", "b"})
    touch(dir_ / "images/" + std::string(name) + ".txt", "0 0.5 0.5 0.2 0.2\n");
  const auto yolo = listed("");  // where no file means no objects
  ASSERT_EQ(yolo.size(), 4U);
  EXPECT_EQ(yolo[3].sources.at("seg").path, dir_ / "images/d.txt");
  for (const auto& [index, most] : {std::pair{0, 1.}, std::pair{3, 0.}}) {
    const auto& sources = yolo[static_cast<std::size_t>(index)].sources;
    EXPECT_EQ(annotated(sources.at("raw").path, sources.at("seg").path, TargetKind::instances)
                  .at("seg")
                  .max()
                  .item<double>(),
              most);
  }
}

TEST(AnnotationTargets, AFileIsNoTargetOfItself) {
  const test::TmpDir dir;
  write_picture(dir / "a.png");
  fs::create_symlink(dir / "a.png", dir / "link.png");
  fs::copy_file(dir / "a.png", dir / "copy.png");
  const auto load = [&](const std::string& target) {
    return message_of([&] { annotated(dir / "a.png", target, TargetKind::mask); });
  };
  EXPECT_NE(load(dir / "a.png").find("'seg' is the image itself"), std::string::npos);
  EXPECT_NE(load(dir / "link.png").find("'seg' is the image itself"), std::string::npos);
  EXPECT_EQ(load(dir / "copy.png").find("is the image itself"), std::string::npos);
}

}  // namespace
}  // namespace cytra
