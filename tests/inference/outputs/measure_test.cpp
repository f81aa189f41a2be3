#include "inference/outputs/measure.h"

#include "base/error.h"
#include "tests/support/golden.h"
#include "tests/support/message_of.h"

namespace cytra::inference {
namespace {

/// The column of a table, as a tensor.
at::Tensor column(const Measurements& table, const std::string& name) {
  const auto found = std::find(table.columns.begin(), table.columns.end(), name);
  if (found == table.columns.end()) return {};
  std::vector<double> values;
  for (const std::vector<double>& row : table.rows)
    values.push_back(row.at(static_cast<std::size_t>(found - table.columns.begin())));
  return at::tensor(values, at::kDouble);
}

TEST(Measure, EqualsScikitImage) {
  const test::Golden golden("measure");
  for (const test::GoldenCase& entry : golden.cases(5)) {
    const Measurements table =
        measure(entry.tensor("labels").to(at::kInt), entry.tensor("image"), {});
    for (const config::Node& name : entry.node.at("columns").list) {
      const at::Tensor found = column(table, name.string);
      ASSERT_TRUE(found.defined()) << name.string;
      // The peer's means and deviations are of float32; some eccentricities are roots of what
      // rounding leaves of 0.
      const double tolerance = name.string.rfind("intensity", 0) == 0 ? 2e-6 : 1e-12;
      const double least =
          name.string == "eccentricity" || name.string.rfind("axis", 0) == 0 ? 1e-6 : 1e-12;
      EXPECT_TRUE(found.allclose(entry.tensor("out." + name.string), tolerance, least))
          << entry.name << " " << name.string << "\n"
          << found << entry.tensor("out." + name.string);
    }
    EXPECT_EQ(table.columns.size(), entry.node.at("columns").list.size());
  }
}

TEST(Measure, ByRowsIsThatOfTheWhole) {
  at::manual_seed(1);
  for (const std::vector<int64_t>& size : {std::vector<int64_t>{37, 29}, {13, 12, 9}}) {
    const at::Tensor labels =
        at::randint(0, 4, size, at::kInt).mul(at::randint(0, 2, size, at::kInt));
    std::vector<int64_t> channels = size;
    channels.insert(channels.begin(), 2);
    const at::Tensor image = at::rand(channels);
    const Measurements whole = measure(labels, image, {});
    for (const int64_t rows : {1, 2, 3, 20}) {
      RowMeasures parts;
      for (int64_t first = 0; first < size[0]; first += rows) {
        const int64_t count = std::min(rows, size[0] - first);
        parts.add(labels.narrow(0, first, count), image.narrow(1, first, count));
      }
      const Measurements table = parts.finish({});
      EXPECT_EQ(table.columns, whole.columns);
      EXPECT_EQ(table.rows, whole.rows) << rows;
    }
  }
}

TEST(Measure, HasMicrometresWhereTheSpacingIsKnown) {
  at::Tensor labels = at::zeros({2, 4, 6}, at::kInt);
  labels.slice(0, 1, 2).slice(1, 1, 3).slice(2, 2, 5).fill_(7);
  io::Geometry geometry;
  geometry.spacing_um = {2, 0.5, 0.25};
  const Measurements table = measure(labels, {}, geometry);
  ASSERT_EQ(table.rows.size(), 1);
  EXPECT_EQ(column(table, "label").item<double>(), 7);
  EXPECT_EQ(column(table, "volume_um3").item<double>(), 6 * 0.25);
  EXPECT_EQ(column(table, "centroid_um-0").item<double>(), 2);
  EXPECT_EQ(column(table, "centroid_um-1").item<double>(), 0.75);
  EXPECT_EQ(column(table, "centroid_um-2").item<double>(), 0.75);
  EXPECT_NEAR(column(table, "equivalent_diameter_um").item<double>(), std::cbrt(9 / M_PI), 1e-12);
  EXPECT_EQ(table.cells()[0][0], "7");
  EXPECT_EQ(column(measure(labels[1], {}, geometry), "area_um2").item<double>(), 6 * 0.125);
}

TEST(Measure, ObjectsOfAMaskAreItsComponents) {
  const at::Tensor mask = at::tensor({1, 0, 2, 2, 0, 1, 2, 0, 0, 0, 0, 1}, at::kByte).view({3, 4});
  const MaskObjects found = objects_of(mask);  // the first two touch at a corner, 1 and 2 by sides
  EXPECT_TRUE(
      found.labels.equal(at::tensor({1, 0, 2, 2, 0, 1, 2, 0, 0, 0, 0, 3}, at::kInt).view({3, 4})));
  EXPECT_EQ(found.classes, (std::vector<int32_t>{0, 1, 2, 1}));
  at::Tensor volume = at::zeros({3, 3, 3}, at::kInt);
  volume[0][0][0] = volume[1][1][1] = 5;
  volume[2][0][2] = 5;
  EXPECT_EQ(objects_of(volume).classes, (std::vector<int32_t>{0, 5}));
  volume[1][1][1] = 0;
  EXPECT_EQ(objects_of(volume).classes, (std::vector<int32_t>{0, 5, 5}));
}

TEST(Measure, OfNoObjectsHasItsColumns) {
  const Measurements table = measure(at::zeros({3, 4}, at::kInt), at::ones({2, 3, 4}), {});
  EXPECT_TRUE(table.rows.empty());
  EXPECT_EQ(table.columns.size(), 21);
  EXPECT_EQ(message_of<DataError>([] {
              measure(at::zeros({3, 4}, at::kInt), at::ones({1, 4, 4}), {});
            }),
            "an image of [1, 4, 4] for labels of [3, 4], expected their size");
}

}  // namespace
}  // namespace cytra::inference
