// Annotations in the formats of others, and what the peers make of them:
// tests/golden/make_annotations.py.
#include "io/annotations/annotations.h"

#include <cstring>

#include <nlohmann/json.hpp>

#include "io/annotations/paint.h"
#include "io/annotations/shapes.h"
#include "io/objects/geojson.h"
#include "io/objects/imagej_roi.h"
#include "tests/io/fixture.h"

namespace cytra::io {
namespace {

const std::string kAnnotated = std::string(CYTRA_SOURCE_DIR) + "/tests/golden/annotations/";

AnnotatedImage picture(const std::string& path = "/data/train/cells.png", int64_t depth = 1) {
  return {path, depth, 40, 48};
}

std::vector<int> painted(const std::string& path,
                         TargetKind kind,
                         const AnnotatedImage& image,
                         const std::vector<std::string>& names = {}) {
  const Image target = paint_annotations(path, read_annotations(path, image), image, kind, names);
  std::vector<int> values(static_cast<std::size_t>(target.count()));
  for (std::size_t i = 0; i < values.size(); ++i)
    std::memcpy(&values[i], target.pixels.data() + 4 * i, 4);
  return values;
}

std::vector<int> peers(const std::string& name) {
  const Image image = read_image(kAnnotated + name + ".png");
  return {image.pixels.begin(), image.pixels.end()};
}

struct Drawn {
  const char *file, *expected;
  std::vector<std::string> names;
};
class AnnotationFiles : public ::testing::TestWithParam<Drawn> {};

TEST_P(AnnotationFiles, ArePaintedAsByThePeers) {
  const auto& [file, expected, names] = GetParam();
  const TargetKind kind = names.empty() ? TargetKind::instances : TargetKind::classes;
  const int64_t depth = std::string(file) == "stack.zip" ? 3 : 1;
  EXPECT_EQ(painted(kAnnotated + file, kind, picture("/data/train/cells.png", depth), names),
            peers(expected));
  EXPECT_TRUE(is_annotation_path(kAnnotated + file));
  EXPECT_EQ(class_names_of({kAnnotated + file}).empty(),
            std::string(file).find("stack") == 0 || std::string(file).find("fine") == 0 ||
                std::string(file).find("rois") == 0);
}
INSTANTIATE_TEST_SUITE_P(
    All,
    AnnotationFiles,
    ::testing::Values(Drawn{"rois.zip", "rois", {}},
                      Drawn{"fine.roi", "fine", {}},
                      Drawn{"stack.zip", "stack", {}},
                      Drawn{"qupath.geojson", "qupath", {}},
                      Drawn{"bare.json", "qupath", {}},
                      Drawn{"one.geojson", "one", {}},
                      Drawn{"qupath.geojson", "qupath_classes", {"Stroma", "Tumor"}},
                      Drawn{"coco.json", "coco", {}},
                      Drawn{"coco.json", "coco_classes", {"nucleus", "mitotic"}},
                      Drawn{"labelme.json", "labelme", {}},
                      Drawn{"voc.xml", "voc", {}},
                      Drawn{"yolo/cells.txt", "yolo", {}}));

Image mask_file(int64_t depth, std::vector<unsigned char> pixels) {
  Image mask;
  mask.shape = {1, depth, 2, 3};
  mask.pixels = std::move(pixels);
  return mask;
}

TEST(Annotations, AFolderHasAMaskForEachObject) {
  const Folder dir;
  std::filesystem::create_directories(dir / "masks");
  const AnnotatedImage image{dir / "masks/image.png", 1, 2, 3};
  write_png(image.path, mask_file(1, {9, 8, 7, 6, 5, 4}));  // beside them: none of them
  write_png(dir / "masks/b.png", mask_file(1, {0, 255, 255, 0, 0, 255}));
  write_png(dir / "masks/a.png", mask_file(1, {1, 1, 0, 0, 0, 0}));
  write_png(dir / "masks/empty.png", mask_file(1, {0, 0, 0, 0, 0, 0}));
  const std::string folder = dir / "masks";
  EXPECT_TRUE(is_annotation_path(folder));
  EXPECT_FALSE(is_annotation_path(image.path));
  EXPECT_TRUE(class_names_of({folder}).empty());
  EXPECT_EQ(painted(folder, TargetKind::instances, image), (std::vector<int>{1, 2, 2, 0, 0, 2}));
  EXPECT_EQ(painted(folder, TargetKind::mask, image), (std::vector<int>{1, 1, 1, 0, 0, 1}));
  const std::vector<int> boxes = painted(folder, TargetKind::boxes, image);
  EXPECT_EQ(boxes.size(), 12U);  // two layers: they overlap
  EXPECT_NE(message_of<DataError>([&] {
              read_annotations(folder, {image.path, 1, 2, 4});
            }).find("a.png: 1 x 2 x 3 voxels, expected the size of " + image.path),
            std::string::npos);
  write_png(dir / "masks/c.png", mask_file(1, {1, 2, 0, 0, 0, 0}));
  EXPECT_NE(message_of<DataError>([&] {
              read_annotations(folder, image);
            }).find("c.png: several values other than 0"),
            std::string::npos);
}

TEST(Annotations, AMaskForEachObjectOfAStack) {
  const Folder dir;
  std::filesystem::create_directories(dir / "masks");
  write_ome_tiff(dir / "masks/a.tif", mask_file(2, {1, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0}));
  write_ome_tiff(dir / "masks/b.tif", mask_file(2, {0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 7}));
  EXPECT_EQ(painted(dir / "masks", TargetKind::instances, {dir / "image.tif", 2, 2, 3}),
            (std::vector<int>{1, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 2}));
}

TEST(Annotations, OutlinesOfCocoAreFilledAsByPycocotools) {
  const auto expected = nlohmann::json::parse(bytes_of(kAnnotated + "expected.json"));
  for (const auto& one : expected["coco_fill"]) {
    const auto corners = one["corners"].get<std::vector<double>>();
    std::vector<uint16_t> ours(40 * 48), theirs(40 * 48);
    fill_coco_polygon("a.json", corners, 40, 48).paint(1, ours.data());
    parse_rle(one["counts"].get<std::string>(), 40, 48).paint(1, theirs.data());
    EXPECT_EQ(ours, theirs) << one["corners"].dump();
  }
}

TEST(Annotations, ClassesHaveTheOrderOfTheirFormatOrTheAlphabet) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(class_names_of({kAnnotated + "qupath.geojson"}), (Names{"Stroma", "Tumor"}));
  EXPECT_EQ(class_names_of({kAnnotated + "voc.xml", kAnnotated + "labelme.json"}),
            (Names{"cell", "debris", "red & white", "red cell"}));
  // By COCO's ids; what only sums up the others is none.
  EXPECT_EQ(class_names_of({kAnnotated + "coco.json"}), (Names{"nucleus", "mitotic"}));
  EXPECT_EQ(class_names_of({kAnnotated + "yolo/cells.txt"}), (Names{"nucleus", "mitotic figure"}));
  const Folder folder;
  put(folder / "a.txt", "10 0.5 0.5 0.1 0.1\n9 0.5 0.5 0.1 0.1\n");
  EXPECT_EQ(class_names_of({folder / "a.txt"}), (Names{"9", "10"}));
  put(folder / "data.yaml", "nc: 11\nnames: {9: nine, 10: ten, 0: none}\n");
  EXPECT_EQ(read_annotations(folder / "a.txt", picture()).at(1).class_name, "nine");
}

TEST(Annotations, OneCocoFileIsOfManyImages) {
  const std::string path = kAnnotated + "coco.json";
  EXPECT_EQ(annotated_images(path),
            (std::vector<std::string>{"train/cells.png", "valid/cells.png", "empty.png"}));
  EXPECT_TRUE(annotated_images(kAnnotated + "qupath.geojson").empty());
  EXPECT_EQ(read_annotations(path, picture("valid/cells.png")).size(), 1U);
  EXPECT_EQ(read_annotations(path, picture("x/train/cells.png")).size(), 3U);
  EXPECT_TRUE(read_annotations(path, picture("elsewhere/empty.png")).empty());
  // Stems pair, as everywhere, where no image of the list has the ending.
  EXPECT_EQ(read_annotations(path, picture("valid/cells.tif")).size(), 1U);
  EXPECT_NE(message_of<DataError>([&] {
              read_annotations(path, picture("cells.png"));
            }).find("2 images are named 'cells.png'"),
            std::string::npos);
  EXPECT_NE(message_of<DataError>([&] {
              read_annotations(path, picture("emptz.png"));
            }).find("'empty.png'"),
            std::string::npos);
  EXPECT_NE(message_of<DataError>([&] {
              read_annotations(path, {"empty.png", 1, 48, 40});
            }).find("48 x 40"),
            std::string::npos);
}

TEST(Annotations, BoxesThatOverlapAreKept) {
  const AnnotatedImage image = picture();
  const auto expected = nlohmann::json::parse(bytes_of(kAnnotated + "expected.json"))["boxes"];
  const auto coco = read_annotations(kAnnotated + "coco.json", image);
  for (std::size_t i = 0; i < 2; ++i) {
    const auto box = expected[std::to_string(i + 1)].get<std::vector<double>>();
    EXPECT_EQ(coco[i].box,
              (std::array<double, 4>{box[0], box[1], box[0] + box[2], box[1] + box[3]}));
  }
  const std::vector<std::string> names{"red & white", "red cell"};
  const std::string voc = kAnnotated + "voc.xml";
  const Image layers =
      paint_annotations(voc, read_annotations(voc, image), image, TargetKind::boxes, names);
  EXPECT_EQ(layers.shape, (std::array<int64_t, 4>{2, 1, 40, 48}));
  std::vector<int> values(2 * 40 * 48);
  std::memcpy(values.data(), layers.pixels.data(), layers.bytes());
  for (int y = 0; y < 40; ++y) {
    for (int x = 0; x < 48; ++x) {
      const auto at = static_cast<std::size_t>(y * 48 + x);
      EXPECT_EQ(values[at], y < 10 && x < 12 ? 2 * box_class(2) + 1 : 0);
      EXPECT_EQ(values[at + 40 * 48], y >= 5 && x >= 7 && x < 30 ? box_class(2) + 1 : 0);
    }
  }
}

/// What predict writes is read again as the same objects.
TEST(Annotations, ReadBackWhatIsWritten) {
  const Folder folder;
  for (const int64_t depth : {1, 3}) {
    Image labels;
    labels.dtype = Dtype::u16;
    labels.shape = {1, depth, 40, 48};
    labels.pixels.resize(labels.bytes());
    std::vector<int> values;
    for (int64_t z = 0; z < depth; ++z) {
      for (int y = 0; y < 40; ++y) {
        for (int x = 0; x < 48; ++x) {
          const int dx = x % 16 - 8, dy = y % 20 - 10, squared = dx * dx + dy * dy;
          const bool is_inside = squared < 50 && squared > (x < 16 ? 9 : -1);  // some have holes
          values.push_back(is_inside ? 1 + x / 16 + 3 * (y / 20) : 0);
        }
      }
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto value = static_cast<uint16_t>(values[i]);
      std::memcpy(labels.pixels.data() + 2 * i, &value, 2);
    }
    const auto polygons = trace_labels(labels);
    GeoJsonOptions options;
    options.is_stack = depth > 1;
    write_geojson(folder / "a.geojson", polygons, options);
    write_imagej_rois(folder / "a.zip", polygons, depth > 1);
    for (const char* name : {"a.geojson", "a.zip"}) {
      EXPECT_EQ(painted(folder / name, TargetKind::instances, picture("a.png", depth)), values)
          << name << " of " << depth;
    }
  }
}

TEST(Annotations, CvatHasOneFileForAllImages) {
  const Folder folder;
  const std::string image = R"(<image id="0" name="in/cells.png" width="48" height="40">)";
  put(folder / "a.xml",
      "<?xml version=\"1.0\"?><annotations><version>1.1</version><meta><task/></meta>" + image + R"(
        <polygon label="cell" points="2.0,2.0;10.0,2.0;10.0,8.0;2.0,8.0" z_order="1"></polygon>
        <box label="dot" xtl="4" ytl="4" xbr="14" ybr="6" rotation="90" z_order="0"/>
        <mask label="cell" rle="1, 2, 2, 3" left="40" top="30" width="4" height="2" z_order="0"/>
        <points label="cell" points="1,1"/></image>
        <image id="1" name="other.png" width="9" height="9"/></annotations>)");
  EXPECT_EQ(annotated_images(folder / "a.xml"),
            (std::vector<std::string>{"in/cells.png", "other.png"}));
  EXPECT_EQ(class_names_of({folder / "a.xml"}), (std::vector<std::string>{"cell", "dot"}));
  const std::vector<int> values = painted(folder / "a.xml", TargetKind::instances, picture());
  const auto at = [&](std::size_t y, std::size_t x) { return values[48 * y + x]; };
  EXPECT_EQ(at(2, 2), 3);  // the upper one
  EXPECT_EQ(at(7, 9), 3);
  EXPECT_EQ(at(9, 8), 1);  // the box stands upright
  EXPECT_EQ(at(5, 13), 0);
  EXPECT_EQ(std::ranges::count(values, 2), 5);
  for (const auto& [y, x] : {std::pair{30, 41}, {30, 42}, {31, 41}, {31, 42}, {31, 43}})
    EXPECT_EQ(at(y, x), 2);
  EXPECT_EQ(read_annotations(folder / "a.xml", {"/x/other.tif", 1, 9, 9}).size(), 0U);
  for (const auto& [shape, part] :
       {std::pair{"<box label=\"a\" xtl=\"4\"/>", "has no 'ytl'"},
        {"<polygon label=\"a\" points=\"1,2;3\"/>", "a point is '3'"},
        {"<mask label=\"a\" rle=\"1,9\" left=\"0\" top=\"0\" width=\"2\" height=\"2\"/>",
         "more pixels"},
        {"<track id=\"0\"/>", "of a video"}}) {
    put(folder / "b.xml", "<annotations>" + image + shape + "</image></annotations>");
    EXPECT_NE(message_of<DataError>([&] { annotated_images(folder / "b.xml"); }).find(part),
              std::string::npos)
        << shape;
  }
}

TEST(Annotations, RefusesWhatIsNone) {
  const Folder folder;
  const auto refused = [&](const char* name, const std::string& bytes, const std::string& part) {
    put(folder / name, bytes);
    const std::string said =
        message_of<DataError>([&] { painted(folder / name, TargetKind::instances, picture()); });
    EXPECT_NE(said.find(part), std::string::npos) << said;
    EXPECT_EQ(said.rfind(folder / name, 0), 0U) << said;
    EXPECT_NE(said.find("expected"), std::string::npos) << said;
  };
  refused("a.json", "{\"training\": []}", "not annotations of a known kind");
  refused("a.json", "[{\"image_id\": 1, \"bbox\": [1, 2, 3, 4]}]", "COCO's results");
  refused("a.json", "{\"features\": [", "not JSON, expected");
  refused("a.json", "{\"shapes\": [{\"shape_type\": \"mask\"}]}", "shapes[0]");
  refused("a.json",
          R"({"shapes": [], "imageHeight": 48, "imageWidth": 40})",
          "40 x 48 pixels, expected the size of /data/train/cells.png: 48 x 40");
  refused("a.json",
          R"({"images": [{"id": 1, "file_name": "cells.png"}], "annotations": [{"image_id": 2}]})",
          "annotations[0]: neither segmentation nor bbox");
  refused("a.json",
          R"({"images": [{"id": 1, "file_name": "cells.png"}],
              "annotations": [{"image_id": 2, "bbox": [1, 2, 3, 4]}]})",
          "annotations[0]: image_id is 2");
  refused("a.zip", bytes_of(kAnnotated + "rois.zip").substr(0, 900), "directory");
  refused("a.roi", bytes_of(kAnnotated + "fine.roi").substr(0, 70), "ends too early");
  refused("a.xml", "<OME><Image/></OME>", "Pascal VOC");
  refused("a.xml", "<annotation><object><name>a</name>", "ends too early");
  refused("a.xml", "<annotations><image name=\"a\" width=\"9\" height=\"9\">", "ends too early");
  refused("a.txt", "0 0.5 0.5 0.1\n", "a.txt:1");
  refused("a.txt", "0 120 80 20 20\n", "shares");
  refused("a.txt", "nucleus 0.5 0.5 0.1 0.1\n", "'nucleus");
  refused("a.txt", "0 0.5 0.5 0.1 nan\n", "nan");
  put(folder / "empty.txt", "");  // of an image without objects
  EXPECT_TRUE(read_annotations(folder / "empty.txt", picture()).empty());
  EXPECT_NE(message_of<DataError>([&] {
              painted(kAnnotated + "stack.zip", TargetKind::instances, picture());
            }).find("has: 1 plane"),
            std::string::npos);
  EXPECT_NE(message_of<DataError>([&] {
              painted(kAnnotated + "voc.xml", TargetKind::classes, picture(), {"red cel"});
            }).find("the class 'red cell', expected one of class_names: red cel"),
            std::string::npos);
}

}  // namespace
}  // namespace cytra::io
