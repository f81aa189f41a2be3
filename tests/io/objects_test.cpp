// Outlines of objects, and the files they go to. Other programs read the same in
// tests/golden/check_objects.py.
#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include <nlohmann/json.hpp>

#include "io/csv.h"
#include "io/objects/geojson.h"
#include "io/objects/imagej_roi.h"
#include "tests/io/fixture.h"

namespace cytra::io {
namespace {

Image labels_of(int64_t height, int64_t width, const std::vector<int>& values, int64_t depth = 1) {
  Image image;
  image.dtype = Dtype::u16;
  image.shape = {1, depth, height, width};
  image.pixels.resize(image.bytes());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto value = static_cast<uint16_t>(values[i]);
    std::memcpy(image.pixels.data() + 2 * i, &value, 2);
  }
  return image;
}

/// Blobs, rings and dust, of `classes` labels.
std::vector<int> random_labels(int64_t height, int64_t width, int classes, uint32_t seed) {
  uint32_t state = seed;
  const auto random = [&](int64_t below) {
    state = state * 1664525 + 1013904223;
    return static_cast<int64_t>(state >> 8) % below;
  };
  std::vector<int> labels(static_cast<std::size_t>(height * width));
  for (int i = 0; i < 12; ++i) {
    const int64_t cy = random(height), cx = random(width), radius = 1 + random(height / 3 + 1);
    const int label = static_cast<int>(random(classes + 1));
    for (int64_t y = 0; y < height; ++y) {
      for (int64_t x = 0; x < width; ++x) {
        const int64_t squared = (y - cy) * (y - cy) + (x - cx) * (x - cx);
        if (squared <= radius * radius && (i % 3 != 0 || 2 * squared > radius * radius))
          labels[static_cast<std::size_t>(y * width + x)] = label;
      }
    }
  }
  for (int& label : labels) {
    if (random(8) == 0) label = static_cast<int>(random(classes + 1));
  }
  return labels;
}

/// Whether rings go round the centre of a pixel, by counting the sides left of it.
bool holds(const Ring& ring, int64_t y, int64_t x) {
  bool is_inside = false;
  for (std::size_t i = 0; i < ring.size(); ++i) {
    const auto &a = ring[i], &b = ring[(i + 1) % ring.size()];
    const double low = std::min(a[1], b[1]), high = std::max(a[1], b[1]);
    const double centre = static_cast<double>(y) + 0.5;
    if (a[0] == b[0] && a[0] <= static_cast<double>(x) && low < centre && centre < high)
      is_inside = !is_inside;
  }
  return is_inside;
}

void expect_simple(const Ring& ring) {
  ASSERT_GE(ring.size(), 4U);
  std::set<std::array<double, 2>> corners(ring.begin(), ring.end());
  EXPECT_EQ(corners.size(), ring.size());
  for (std::size_t i = 0; i < ring.size(); ++i) {  // sides are upright and level by turns
    const auto &a = ring[i], &b = ring[(i + 1) % ring.size()], &c = ring[(i + 2) % ring.size()];
    EXPECT_NE(a[0] == b[0], a[1] == b[1]);
    EXPECT_NE(a[0] == b[0], b[0] == c[0]);
  }
}

TEST(Polygons, FillWhatTheyWereTracedFrom) {
  for (uint32_t seed = 1; seed < 60; ++seed) {
    const int64_t height = 1 + seed % 29, width = 1 + seed * 7 % 31;
    const int classes = seed % 3 == 0 ? 1 : 4;
    const std::vector<int> labels = random_labels(height, width, classes, seed);
    std::vector<int> filled(labels.size());
    double area = 0;
    for (const Polygon& polygon : trace_labels(labels_of(height, width, labels))) {
      expect_simple(polygon.outer);
      EXPECT_GT(signed_area(polygon.outer), 0);
      double pixels = signed_area(polygon.outer);
      for (const Ring& hole : polygon.holes) {
        expect_simple(hole);
        EXPECT_LT(signed_area(hole), 0);
        pixels += signed_area(hole);
      }
      int64_t count = 0;
      for (int64_t y = 0; y < height; ++y) {
        for (int64_t x = 0; x < width; ++x) {
          bool is_inside = holds(polygon.outer, y, x);
          for (const Ring& hole : polygon.holes) is_inside = is_inside && !holds(hole, y, x);
          if (!is_inside) continue;
          ++count;
          int& pixel = filled[static_cast<std::size_t>(y * width + x)];
          EXPECT_EQ(pixel, 0);
          pixel = static_cast<int>(polygon.label);
        }
      }
      EXPECT_EQ(static_cast<double>(count), pixels);
      area += pixels;
    }
    ASSERT_EQ(filled, labels) << seed;
    EXPECT_EQ(area,
              static_cast<double>(labels.size()) -
                  static_cast<double>(std::count(labels.begin(), labels.end(), 0)));
  }
}

TEST(Polygons, CornersHolesAndParts) {
  // A ring whose hole is open at a corner, and a pixel of the same label beside it by a corner
  const std::vector<int> labels = {1,
                                   1,
                                   1,
                                   0,  //
                                   1,
                                   0,
                                   1,
                                   0,  //
                                   1,
                                   1,
                                   0,
                                   0,  //
                                   0,
                                   0,
                                   1,
                                   2};
  const std::vector<Polygon> polygons = trace_labels(labels_of(4, 4, labels));
  ASSERT_EQ(polygons.size(), 3U);
  EXPECT_EQ(polygons[0].label, 1);
  EXPECT_EQ(polygons[0].holes, (std::vector<Ring>{{{2, 2}, {2, 1}, {1, 1}, {1, 2}}}));
  EXPECT_EQ(polygons[0].outer, (Ring{{3, 0}, {3, 2}, {2, 2}, {2, 3}, {0, 3}, {0, 0}}));
  EXPECT_EQ(polygons[1].outer, (Ring{{3, 3}, {3, 4}, {2, 4}, {2, 3}}));
  EXPECT_EQ(polygons[2].label, 2);
  EXPECT_EQ(group_by_object(polygons).size(), 2U);
  EXPECT_EQ(trace_labels(labels_of(3, 3, std::vector<int>(9))).size(), 0U);
}

TEST(Polygons, OfRowsAreThoseOfTheWhole) {
  for (uint32_t seed = 1; seed < 30; ++seed) {
    const int64_t height = 2 + seed, width = 1 + seed * 7 % 31;
    const std::vector<int> labels = random_labels(height, width, 3, seed);
    const std::vector<Polygon> whole = trace_labels(labels_of(height, width, labels));
    const std::vector<uint32_t> bits(labels.begin(), labels.end());
    LabelTracer tracer;
    for (std::span<const uint32_t> rest = bits; !rest.empty();) {
      const std::size_t some =
          std::min(rest.size(), static_cast<std::size_t>(width) * (seed % 4 + 1));
      tracer.add(rest.first(some), width);
      rest = rest.subspan(some);
    }
    tracer.end_plane();
    const std::vector<Polygon> polygons = tracer.take();
    ASSERT_EQ(polygons.size(), whole.size());
    std::array<double, 2> before{-1, 0};
    for (std::size_t i = 0; i < polygons.size(); ++i) {
      EXPECT_EQ(polygons[i].outer, whole[i].outer);
      EXPECT_EQ(polygons[i].holes, whole[i].holes);
      EXPECT_EQ(polygons[i].label, whole[i].label);
      std::array<double, 2> first{1e9, 1e9};
      for (const auto& [x, y] : polygons[i].outer) first = std::min(first, {y, x});
      EXPECT_LT(before, first) << "in the order of their first pixels";
      before = first;
    }
  }
}

TEST(Polygons, EveryTypeAndPlane) {
  for (const Dtype dtype : {Dtype::u8, Dtype::i8, Dtype::u16, Dtype::i16, Dtype::u32, Dtype::i32}) {
    Image image;
    image.dtype = dtype;
    image.shape = {1, 2, 1, 2};
    image.pixels.resize(image.bytes());
    std::memset(image.pixels.data() + 3 * size_of(dtype), 0xff, size_of(dtype));
    const std::vector<Polygon> polygons = trace_labels(image);
    ASSERT_EQ(polygons.size(), 1U);
    EXPECT_EQ(polygons[0].z, 1);
    const bool is_signed = name_of(dtype)[0] == 'i';
    EXPECT_EQ(polygons[0].label, is_signed ? -1 : (int64_t{1} << (8 * size_of(dtype))) - 1);
  }
  EXPECT_THROW(trace_labels(make_image(Dtype::f32, {1, 1, 3, 3})), std::logic_error);
  EXPECT_THROW(trace_labels(make_image(Dtype::u8, {2, 1, 3, 3})), std::logic_error);
}

TEST(GeoJson, HoldsObjectsWithWhatIsKnownOfThem) {
  const Folder folder;
  const std::vector<int> labels = {1, 1, 1, 0, 1, 0, 1, 0, 1, 1, 1, 0, 2, 0, 2, 2};
  GeoJsonOptions options;
  options.describe = [](int64_t label) {
    ObjectProperties properties;
    if (label == 2) return properties;
    properties.class_name = "a \"nucleus\"";
    properties.colour = {1, 2, 3};
    properties.measurements = {{"Area px^2", 8}, {"none", std::nan("")}, {"mean", 0.25}};
    return properties;
  };
  write_geojson(folder / "a.geojson", trace_labels(labels_of(4, 4, labels)), options);
  const auto json = nlohmann::json::parse(bytes_of(folder / "a.geojson"));
  ASSERT_EQ(json["features"].size(), 2U);
  const auto &one = json["features"][0], &two = json["features"][1];
  EXPECT_EQ(one["geometry"]["type"], "Polygon");
  EXPECT_EQ(one["geometry"]["coordinates"].dump(),
            "[[[3,0],[3,3],[0,3],[0,0],[3,0]],[[2,2],[2,1],[1,1],[1,2],[2,2]]]");
  EXPECT_EQ(
      one["properties"].dump(),
      R"({"classification":{"color":[1,2,3],"name":"a \"nucleus\""},"measurements":{"Area px^2":8,)"
      R"("mean":0.25},"name":"1","objectType":"detection"})");
  EXPECT_EQ(two["geometry"]["type"], "MultiPolygon");
  EXPECT_EQ(two["geometry"]["coordinates"].size(), 2U);
  EXPECT_EQ(two["properties"].dump(), R"({"name":"2","objectType":"detection"})");
  options.is_annotation = options.is_stack = true;
  write_geojson(folder / "b.geojson", trace_labels(labels_of(2, 4, labels, 2)), options);
  const auto stack = nlohmann::json::parse(bytes_of(folder / "b.geojson"));
  ASSERT_EQ(stack["features"].size(), 3U);  // label 1 of both planes
  EXPECT_EQ(stack["features"][2]["geometry"]["plane"]["z"], 1);
  write_geojson(folder / "c.geojson", {});
  EXPECT_EQ(nlohmann::json::parse(bytes_of(folder / "c.geojson"))["features"].size(), 0U);
}

TEST(ImageJRois, RefuseWhatTheirNumbersCantHold) {
  const Folder folder;
  Polygon far;
  far.outer = {{60'001, 0}, {60'001, 1}, {60'000, 1}, {60'000, 0}};
  far.label = 1;
  EXPECT_THROW(write_imagej_rois(folder / "a.zip", {far}), DataError);
  EXPECT_EQ(folder.files(), 0U);
}

TEST(Csv, WritesWhatItReads) {
  const Folder folder;
  for (const char* name : {"a.csv", "a.tsv"}) {
    const std::vector<std::vector<std::string>> rows = {
        {"1", "a, \"b\"", cell_of(0.1)},
        {"", "two\nlines\tand a tab", cell_of(std::nan(""))},
        {"3", "", cell_of(1e300)}};
    write_table(folder / name, {"label", "a name", "value"}, rows);
    const Table table = read_table(folder / name);
    EXPECT_EQ(table.columns, (std::vector<std::string>{"label", "a name", "value"}));
    EXPECT_EQ(table.rows, rows);
  }
  EXPECT_EQ(bytes_of(folder / "a.csv").substr(0, 39),
            "label,a name,value\n1,\"a, \"\"b\"\"\",0.1\n,\"t");
  EXPECT_THROW(write_table(folder / "b.csv", {"a"}, {{"1", "2"}}), std::logic_error);
}

/// For tests/golden/check_objects.py.
TEST(Objects, DISABLED_WriteSamples) {
  const char* folder = std::getenv("CYTRA_WRITE_SAMPLES");
  ASSERT_NE(folder, nullptr);
  const std::string root = std::string(folder) + "/";
  for (uint32_t seed = 1; seed < 9; ++seed) {
    const bool is_stack = seed % 4 == 0;
    const int64_t depth = is_stack ? 3 : 1;
    const Image image =
        labels_of(60, 70, random_labels(60 * depth, 70, static_cast<int>(seed * 3), seed), depth);
    const std::string name = root + std::to_string(seed);
    const std::vector<Polygon> polygons = trace_labels(image);
    write_npy(name + ".npy", image);
    GeoJsonOptions options;
    options.is_stack = is_stack;
    write_geojson(name + ".geojson", polygons, options);
    write_imagej_rois(name + ".zip", polygons, is_stack, seed == 8 ? 2 : 1);
  }
  // More than a zip archive's own numbers hold
  std::vector<int> dots(300 * 1000);
  int label = 0;
  for (std::size_t i = 0; i < dots.size(); i += 4) dots[i] = label++ % 65535 + 1;
  Image image = labels_of(300, 1000, dots);
  write_npy(root + "many.npy", image);
  std::vector<Polygon> polygons = trace_labels(image);
  for (std::size_t i = 0; i < polygons.size(); ++i) polygons[i].label = static_cast<int64_t>(i) + 1;
  write_imagej_rois(root + "many.zip", polygons);
}

}  // namespace
}  // namespace cytra::io
