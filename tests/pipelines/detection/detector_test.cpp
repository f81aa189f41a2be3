#include "pipelines/detection/detector.h"

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/api/module.h>

#include "base/error.h"
#include "config/registry.h"
#include "nn/detection_model.h"
#include "nn/weights.h"
#include "tests/pipelines/found.h"
#include "tests/support/golden.h"
#include "tests/support/message_of.h"
#include "tests/support/tmp_dir.h"
#include "training/checkpoint.h"

namespace cytra::pipelines {
namespace {

constexpr const char* kDetectorConfig = R"(
task:
  _target_: DetectionTask
  x_key: raw
  y_key: instances
  model: {_target_: FCOS, in_channels: 1, filters: [8, 8, 8], width: 32, num_convs: 1}
data:
  transforms:
    valid:
      - {_target_: LoadImaged, keys: [raw, instances], spatial_dims: 2}
      - {_target_: NormalizeIntensityd, keys: [raw], channel_wise: true}
)";

/// A checkpoint as `train` writes them, of a model that has learned nothing.
void write_detector(const std::string& path, const std::string& config = kDetectorConfig) {
  at::manual_seed(3);
  const auto model = make<nn::Model>(config::parse_yaml(config, "config").at("task.model"));
  training::Snapshot snapshot;
  for (const auto& [name, tensor] : nn::state_of(*model))
    snapshot.tensors["model." + name] = tensor.detach();
  snapshot.metadata = {{"config", config}, {"state", "{}"}, {"cytra_version", "0.1.0"}};
  training::write_snapshot(path, snapshot);
}

/// Everything that the model finds.
DetectorOptions find_all() {
  DetectorOptions options;
  options.conf_threshold = 0;
  options.max_detections = 50;
  return options;
}

void expect_same(const std::vector<Found>& a, const std::vector<Found>& b) {
  ASSERT_EQ(a.size(), b.size());
  // Scores that differ by rounding alone may change places: each has its own among those left.
  std::vector<Found> left = b;
  for (const Found& one : a) {
    const auto same = std::find_if(left.begin(), left.end(), [&](const Found& other) {
      const auto is_near = [](float x, float y, float bound) { return std::abs(x - y) <= bound; };
      return is_near(one.x0, other.x0, 1e-3F) && is_near(one.y0, other.y0, 1e-3F) &&
             is_near(one.x1, other.x1, 1e-3F) && is_near(one.y1, other.y1, 1e-3F) &&
             is_near(one.score, other.score, 1e-5F) && one.label == other.label;
    });
    ASSERT_NE(same, left.end()) << one.x0 << ' ' << one.y0 << ' ' << one.score;
    left.erase(same);
  }
}

TEST(Detector, ResultsDoNotDependOnTheBatch) {
  const test::TmpDir folder;
  write_detector(folder / "a.ckpt");
  const auto detector = load_detector(folder / "a.ckpt", at::kCPU, find_all());
  EXPECT_EQ(detector->in_channels(), 1);
  at::manual_seed(1);
  // Two that share a batch once they are padded, one of another size, and bytes.
  const std::vector<at::Tensor> images{at::rand({1, 40, 61}),
                                       at::rand({1, 33, 64}),
                                       at::rand({1, 24, 24}),
                                       at::rand({1, 40, 61}).mul(255).to(at::kByte)};
  const auto together = found_of(detector->detect(images));
  ASSERT_EQ(together.size(), images.size());
  for (std::size_t i = 0; i < images.size(); ++i) {
    ASSERT_GT(together[i].size(), 3U);
    expect_same(together[i], found_of(detector->detect({images[i]})).front());
    for (const Found& one : together[i]) {
      EXPECT_GE(one.x0, 0);
      EXPECT_LE(one.x1, static_cast<float>(images[i].size(2)));
      EXPECT_LE(one.y1, static_cast<float>(images[i].size(1)));
    }
  }
  DetectorOptions one_by_one = find_all();
  one_by_one.batch_size = 1;
  const auto apart =
      found_of(load_detector(folder / "a.ckpt", at::kCPU, one_by_one)->detect(images));
  for (std::size_t i = 0; i < images.size(); ++i) expect_same(together[i], apart[i]);
  EXPECT_TRUE(found_of(detector->detect({})).empty());
}

TEST(Detector, IntensitiesAreNormalizedAsInTraining) {
  const test::TmpDir folder;
  write_detector(folder / "a.ckpt");
  const auto detector = load_detector(folder / "a.ckpt", at::kCPU, find_all());
  const at::Tensor image = at::rand({1, 32, 32});
  const auto found = found_of(detector->detect({image, image * 500 + 7}));
  expect_same(found[0], found[1]);
}

TEST(Detector, IntensitiesOfWindowsAreThoseOfTheWholeImage) {
  const test::TmpDir folder;
  write_detector(folder / "a.ckpt");
  std::string plain = kDetectorConfig;
  plain.resize(plain.find("      - {_target_: NormalizeIntensityd"));
  write_detector(folder / "plain.ckpt", plain);
  DetectorOptions options = find_all();
  options.roi_size = {32, 48};
  at::Tensor image = at::rand({1, 70, 100});
  image.slice(1, 0, 40).add_(5);  // windows differ
  const auto found =
      found_of(load_detector(folder / "a.ckpt", at::kCPU, options)->detect({image})).front();
  image = (image - image.mean()) / image.std(false);
  const auto tiled = load_detector(folder / "plain.ckpt", at::kCPU, options);
  ASSERT_GT(found.size(), 20U);
  expect_same(found, found_of(tiled->detect({image})).front());
  const auto whole = load_detector(folder / "plain.ckpt", at::kCPU, find_all());
  EXPECT_NE(whole->fingerprint(), tiled->fingerprint());
  const at::Tensor small = image.slice(1, 0, 32).slice(2, 0, 48);
  const auto a = found_of(tiled->detect({small})).front(),
             b = found_of(whole->detect({small})).front();
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i].x0, b[i].x0) << "of one window";
}

TEST(Detector, OptionsChooseWhatStays) {
  const test::TmpDir folder;
  write_detector(folder / "a.ckpt");
  const at::Tensor image = at::rand({1, 32, 32});
  DetectorOptions options = find_all();
  options.max_detections = 10000;
  const auto all = load_detector(folder / "a.ckpt", at::kCPU, options);
  const auto found = found_of(all->detect({image})).front();
  ASSERT_GT(found.size(), 4U);
  options.conf_threshold = found[3].score;
  const auto better = load_detector(folder / "a.ckpt", at::kCPU, options);
  EXPECT_EQ(found_of(better->detect({image})).front().size(), 3U);
  EXPECT_NE(better->fingerprint(), all->fingerprint());
  options.conf_threshold = 0;
  options.max_detections = 2;
  const auto two = load_detector(folder / "a.ckpt", at::kCPU, options);
  EXPECT_EQ(found_of(two->detect({image, image})).front().size(), 2U);
  EXPECT_EQ(two->full_windows(), 2);
  EXPECT_EQ(all->full_windows(), 0);
}

TEST(Detector, EnginesAndPrecisionsFindTheSameObjects) {
  const test::TmpDir folder;
  write_detector(folder / "a.ckpt");
  DetectorOptions options = find_all();
  const auto exact = load_detector(folder / "a.ckpt", at::kCPU, options);
  const at::Tensor image = at::rand({1, 32, 48});
  const auto expected = found_of(exact->detect({image})).front();
  ASSERT_GT(expected.size(), 3U);
  options.engine.backend = "auto";
  const auto by_auto =
      found_of(load_detector(folder / "a.ckpt", at::kCPU, options)->detect({image})).front();
  ASSERT_EQ(by_auto.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i)  // neighbours may change places
    EXPECT_NEAR(by_auto[i].score, expected[i].score, 1e-4);
  options.engine = {"eager"};
  options.engine.quantization = "int8_dynamic";  // it has no linear layers
  expect_same(
      found_of(load_detector(folder / "a.ckpt", at::kCPU, options)->detect({image})).front(),
      expected);
  options.engine = {"eager"};
  options.engine.precision = "bf16-mixed";
  const auto coarse = load_detector(folder / "a.ckpt", at::kCPU, options);
  const auto found = found_of(coarse->detect({image})).front();
  ASSERT_FALSE(found.empty());
  EXPECT_NEAR(found[0].score, expected[0].score, 0.02);  // of 8 bits
  EXPECT_NE(found[0].score, expected[0].score);
  EXPECT_NE(coarse->fingerprint(), exact->fingerprint());
}

TEST(Detector, ItsOwnLimitIsTheOneThatIsMet) {
  const test::TmpDir folder;
  std::string few = kDetectorConfig;  // candidates of a level, as a training may set them
  few.replace(few.find("  x_key"), 0, "  topk_candidates: 2\n");
  write_detector(folder / "a.ckpt", few);
  DetectorOptions options = find_all();
  options.iou_threshold = 1;
  options.max_detections = 20;
  const auto detector = load_detector(folder / "a.ckpt", at::kCPU, options);
  EXPECT_EQ(found_of(detector->detect({at::rand({1, 64, 64})})).front().size(), 20U);
}

TEST(Detector, OutputsThatAreNotFiniteAreAnError) {  // or nothing would be found, in silence
  const test::TmpDir folder;
  write_detector(folder / "a.ckpt");
  const auto detector = load_detector(folder / "a.ckpt", at::kCPU, find_all());
  const at::Tensor image = at::rand({1, 32, 32});
  image[0][3][3] = NAN;
  EXPECT_NE(message_of<DataError>([&] { found_of(detector->detect({image})); }).find("not finite"),
            std::string::npos);
}

/// Saves a module with that forward().
void write_script(const std::string& path, const std::string& source) {
  torch::jit::Module module("Detector");
  module.define(source);
  module.save(path);
}

/// Two boxes that overlap, one of another class, one beyond the image, one of a low score.
constexpr const char* kScriptedBoxes = R"(
        boxes = torch.tensor([[1., 2., 11., 12.], [2., 2., 12., 12.], [1., 2., 11., 12.], [20., 20., 99., 99.], [0., 0., 5., 5.]])
        scores = torch.tensor([0.5, 0.9, 0.6, 0.7, 0.1])
        labels = torch.tensor([1, 1, 2, 1, 1])
)";

void expect_scripted(const std::vector<Found>& found) {
  expect_same(found, {{2, 2, 12, 12, 0.9F, 1}, {20, 20, 40, 30, 0.7F, 1}, {1, 2, 11, 12, 0.6F, 2}});
}

TEST(Detector, TakesTorchScriptOfSeveralForms) {
  const test::TmpDir folder;
  const std::string boxes = kScriptedBoxes;
  write_script(folder / "dicts.pt",
               "def forward(self, x: Tensor):\n" + boxes +
                   "        return [{\"boxes\": boxes, \"labels\": labels, \"scores\": scores}]\n");
  write_script(
      folder / "tuple.pt",
      "def forward(self, x: Tensor):\n" + boxes + "        return boxes, scores, labels\n");
  write_script(folder / "torchvision.pt",
               "def forward(self, x: List[Tensor], targets: Optional[List[int]] = None):\n" +
                   boxes +
                   "        losses: Dict[str, Tensor] = {}\n"
                   "        return losses, [{\"boxes\": boxes, \"scores\": scores, \"labels\": "
                   "labels}]\n");
  for (const char* name : {"dicts.pt", "tuple.pt", "torchvision.pt"}) {
    const auto detector = load_detector(folder / name, at::kCPU);
    const auto found = found_of(detector->detect({at::zeros({3, 30, 40}), at::zeros({3, 30, 40})}));
    ASSERT_EQ(found.size(), 2U) << name;
    expect_scripted(found[0]);
    expect_scripted(found[1]);
  }
}

TEST(Detector, TheLimitOfATorchScriptFileIsTold) {
  const test::TmpDir folder;
  for (const int64_t limit : {5, 6}) {
    torch::jit::Module module("Detector");
    module.register_attribute("detections_per_img", c10::IntType::get(), limit);
    module.define("def forward(self, x: Tensor):\n" + std::string(kScriptedBoxes) +
                  "        return boxes, scores, labels\n");
    module.save(folder / "a.pt");
    DetectorOptions options;
    options.conf_threshold = 0.05;
    const auto detector = load_detector(folder / "a.pt", at::kCPU, options);
    detector->detect({at::zeros({3, 30, 40})});
    EXPECT_EQ(detector->full_windows(), limit == 5 ? 1 : 0);
    options.conf_threshold = 0.25;  // what was cut off was below it, as the last one is
    const auto strict = load_detector(folder / "a.pt", at::kCPU, options);
    strict->detect({at::zeros({3, 30, 40})});
    EXPECT_EQ(strict->full_windows(), 0);
  }
}

TEST(Detector, ObjectsOfALargeImageAreFoundByWindows) {
  const test::TmpDir folder;
  write_script(folder / "runs.pt", R"(def forward(self, x: Tensor):
        ends: List[Tensor] = []
        for axis in [0, 1]:  # runs of bright rows and columns, cut or not
            bright = (x[0, 0].amax(1 - axis) > 0.5).long()
            step = torch.diff(torch.cat([torch.zeros([1]).long(), bright, torch.zeros([1]).long()]))
            ends.append(torch.stack([torch.nonzero(step == 1)[:, 0], torch.nonzero(step == -1)[:, 0]], 1))
        y = ends[0].repeat_interleave(ends[1].size(0), 0)
        x = ends[1].repeat([ends[0].size(0), 1])
        boxes = torch.stack([x[:, 0], y[:, 0], x[:, 1], y[:, 1]], 1).float()
        return boxes, torch.ones([boxes.size(0)]), torch.ones([boxes.size(0)])
)");
  DetectorOptions options;
  options.roi_size = {64};
  const auto detector = load_detector(folder / "runs.pt", at::kCPU, options);
  const at::Tensor image = at::zeros({1, 200, 150}, at::kByte);
  int64_t objects = 0;
  for (int64_t y = 5; y < 190; y += 17) {
    for (int64_t x = 2; x < 138; x += 19, ++objects)
      image.slice(1, y, y + 9).slice(2, x, x + 11).fill_(200);
  }
  const auto found = found_of(detector->detect({image})).front();
  EXPECT_EQ(static_cast<int64_t>(found.size()), objects);
  for (const Found& one : found) {
    EXPECT_EQ(one.x1 - one.x0, 11);
    EXPECT_EQ(one.y1 - one.y0, 9);
  }
}

TEST(Detector, RunsTorchvisionsOwn) {
  const test::Golden golden("detection");
  const auto& entry = golden.at("scripted");
  const auto detector = load_detector(
      std::string(CYTRA_SOURCE_DIR) + "/tests/golden/models/torchvision_fcos.pt", at::kCPU);
  EXPECT_EQ(detector->in_channels(), 3);
  const auto found = found_of(detector->detect({entry.tensor("image")})).front();
  const at::Tensor boxes = entry.tensor("boxes"), scores = entry.tensor("scores");
  const at::Tensor labels = entry.tensor("labels");
  ASSERT_GT(scores.size(0), 3);
  std::vector<Found> expected;
  for (int64_t i = 0; i < scores.size(0); ++i) {
    const auto side = [&](int64_t k) { return boxes[i][k].item<float>(); };
    if (side(2) <= side(0) || side(3) <= side(1)) continue;  // beyond the border: of no area
    expected.push_back(
        {side(0), side(1), side(2), side(3), scores[i].item<float>(), labels[i].item<int64_t>()});
  }
  expect_same(found, expected);
}

TEST(Detector, BytesReachTorchScriptAsSharesOfOne) {
  const test::TmpDir folder;
  write_script(folder / "a.pt",
               "def forward(self, x: Tensor):\n"
               "        return torch.tensor([[0., 0., 9., 9.]]), x.max().reshape(1), "
               "torch.tensor([0])\n");
  const auto detector = load_detector(folder / "a.pt", at::kCPU);
  const at::Tensor bytes = at::full({3, 9, 9}, 128, at::kByte);
  EXPECT_FLOAT_EQ(found_of(detector->detect({bytes})).front().at(0).score, 128 / 255.F);
  EXPECT_FLOAT_EQ(found_of(detector->detect({at::full({3, 9, 9}, 0.5)})).front().at(0).score, 0.5F);
}

TEST(Detector, BoxesOfAScriptHaveAnArea) {
  const test::TmpDir folder;
  const auto scripted = [&](const std::string& boxes) {
    write_script(folder / "a.pt",
                 "def forward(self, x: Tensor):\n        boxes = torch.tensor([" + boxes +
                     "])\n        return boxes, torch.ones([boxes.size(0)]), "
                     "torch.ones([boxes.size(0)])\n");
    return found_of(load_detector(folder / "a.pt", at::kCPU)->detect({at::zeros({3, 30, 40})}))
        .front();
  };
  // as it should be; the wrong way round; outside of the image
  const auto found =
      scripted("[1., 2., 11., 12.], [9., 9., 3., 3.], [50., 0., 60., 5.], [-9., 0., 0., 5.]");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].x1, 11);
  EXPECT_NE(
      message_of<DataError>([&] { scripted("[1., 2., float('nan'), 12.]"); }).find("not finite"),
      std::string::npos);
}

TEST(Detector, SaysWhatDoesNotFit) {
  const test::TmpDir folder;
  write_script(folder / "mask.pt", "def forward(self, x: Tensor):\n        return x\n");
  const auto mask = load_detector(folder / "mask.pt", at::kCPU);
  EXPECT_NE(message_of<DataError>([&] {
              found_of(mask->detect({at::zeros({3, 8, 8})}));
            }).find("mask.pt: its forward() returns a Tensor; expected a list of dicts"),
            std::string::npos);
  write_detector(folder / "a.ckpt");
  const auto detector = load_detector(folder / "a.ckpt", at::kCPU);
  EXPECT_EQ(message_of<DataError>([&] {
              found_of(detector->detect({at::zeros({3, 8, 8})}));
            }),
            "an image of (3,8,8), the detector takes (1,H,W)");
  std::string other = kDetectorConfig;
  const std::string model =
      "{_target_: FCOS, in_channels: 1, filters: [8, 8, 8], width: 32, num_convs: 1}";
  other.replace(other.find(model), model.size(), "{_target_: UNet}");
  other.replace(other.find("DetectionTask"), 13, "SegmentationTask");
  write_detector(folder / "b.ckpt", other);
  EXPECT_NE(message_of<ConfigError>([&] {
              load_detector(folder / "b.ckpt", at::kCPU);
            }).find("b.ckpt: a model of the task SegmentationTask, which finds no boxes"),
            std::string::npos);
  std::string resized = kDetectorConfig;
  resized += "      - {_target_: Resized, keys: [raw], spatial_size: [16, 16]}\n";
  write_detector(folder / "c.ckpt", resized);
  EXPECT_NE(message_of<ConfigError>([&] {
              found_of(load_detector(folder / "c.ckpt", at::kCPU)->detect({at::zeros({1, 8, 8})}));
            }).find("change the size of images"),
            std::string::npos);
  DetectorOptions options;
  options.iou_threshold = 2;
  EXPECT_EQ(message_of<ConfigError>([&] { load_detector(folder / "a.ckpt", at::kCPU, options); }),
            "iou_threshold=2: expected 0 to 1");
}

}  // namespace
}  // namespace cytra::pipelines
