// The spatial transforms: against MONAI's values (tests/golden/make_spatial.py), and what the
// random ones draw.
#include <cmath>
#include <set>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "base/error.h"
#include "config/registry.h"
#include "data/sample/resample.h"
#include "data/sample/sample.h"
#include "data/sample/turn.h"
#include "data/transforms/spatial/deform.h"
#include "tests/data/make_transform.h"
#include "tests/data/monai_affine.h"
#include "tests/support/golden.h"
#include "tests/support/message_of.h"

namespace cytra {
namespace {

using Transform = std::shared_ptr<data::Transform>;
constexpr int kDraws = 2000;

data::Sample sample_of(const at::Tensor& image) {
  data::Sample sample;
  sample.id = "a.tif";
  sample.tensors["image"] = image;
  return sample;
}

at::Tensor applied(const Transform& transform, const at::Tensor& image, uint64_t draw) {
  data::Sample sample = sample_of(image);
  Rng rng(3, 0, draw);
  transform->apply(sample, rng);
  return sample.at("image");
}

/// Mean, deviation, least and largest of numbers.
struct Moments {
  double mean = 0, deviation = 0, low = INFINITY, high = -INFINITY;
  explicit Moments(const std::vector<double>& values) {
    for (const double value : values) {
      mean += value / static_cast<double>(values.size());
      low = std::min(low, value);
      high = std::max(high, value);
    }
    for (const double value : values)
      deviation += (value - mean) * (value - mean) / static_cast<double>(values.size());
    deviation = std::sqrt(deviation);
  }
};

/// Uniform in [low, high]: four standard errors for the mean, 5% for the deviation (the standard
/// error of 2,000 draws is 1%), and both ends are reached.
void expect_uniform(const std::vector<double>& values, double low, double high) {
  const Moments moments(values);
  const double width = high - low, deviation = width / std::sqrt(12);
  EXPECT_NEAR(moments.mean,
              (low + high) / 2,
              4 * deviation / std::sqrt(static_cast<double>(values.size())));
  EXPECT_NEAR(moments.deviation, deviation, 0.05 * deviation);
  EXPECT_GE(moments.low, low - 1e-4 * width);
  EXPECT_LE(moments.high, high + 1e-4 * width);
  EXPECT_LT(moments.low, low + 0.02 * width);
  EXPECT_GT(moments.high, high - 0.02 * width);
}

/// Channel d holds the position along d, counted from the centre.
at::Tensor positions(const std::vector<int64_t>& size) {
  std::vector<at::Tensor> ranges;
  for (const int64_t n : size)
    ranges.push_back(at::arange(n, at::kFloat) - static_cast<double>(n - 1) / 2);
  return at::stack(at::meshgrid(ranges, "ij"));
}

/// How far channel c changes per voxel along `dim` around the centre.
double slope(const at::Tensor& image, int64_t c, int64_t dim) {
  at::Tensor line = image[c];
  for (int64_t d = line.dim() - 1; d >= 0; --d) {
    if (d != dim) line = line.select(d, line.size(d) / 2);
  }
  const int64_t middle = line.size(0) / 2;
  return ((line[middle + 1] - line[middle - 1]) / 2).item<double>();
}

TEST(SpatialTransforms, EqualMonai) {
  // The parameters of Affined are float32 in MONAI, and a voxel lies up to 13 voxels of 2.5 mm
  // away.
  const double affine_tolerance = 1e-5;
  // MONAI's grid is float32, of points that lie up to 60 voxels from the centre.
  const double elastic_tolerance = 5e-5;
  const test::Golden golden("spatial");
  std::set<std::string> transforms;
  int compared = 0;
  for (const test::GoldenCase& entry : golden.cases(283)) {
    if (!entry.node.has("transform")) continue;
    const auto name = entry.node.get<std::string>("transform");
    SCOPED_TRACE(entry.name);
    const auto transform =
        cytra::make<data::Transform>(test::component("monai.transforms." + name, entry.options()));
    data::Sample sample;
    sample.id = entry.name;
    std::map<std::string, at::Tensor> before;
    for (const auto& [role, tensor] : entry.node.at("tensors").map) {
      if (role.find(".out") != std::string::npos) continue;
      sample.tensors[role] = entry.tensor(role);
      before[role] = entry.tensor(role).clone();
    }
    const std::map<std::string, at::Tensor> given = sample.tensors;
    const bool with_affine = entry.node.has("affine");
    const auto dims = static_cast<std::size_t>(sample.tensors.begin()->second.dim() - 1);
    for (const auto& [role, tensor] : given) {
      if (!with_affine) break;
      io::Geometry& geometry = sample.geometries[role];
      geometry.affine = of_xyz(entry.node.get<std::string>("affine"), dims);
      geometry.spacing_um = spacing_of(geometry.affine);
    }
    Rng rng(0);
    transform->apply(sample, rng);
    for (const auto& [key, image] : before) {
      EXPECT_TRUE(given.at(key).equal(image)) << key << " was written to";
      if (entry.has(key + ".out")) {
        ++compared;
        EXPECT_EQ(sample.at(key).scalar_type(), at::kFloat);
        EXPECT_LT(test::relative_difference(sample.at(key), entry.tensor(key + ".out")),
                  name == "Rand2DElasticd" ? elastic_tolerance : 1e-5)
            << key;
      }
    }
    if (entry.node.has("affine_out")) {
      const auto expected = of_xyz(entry.node.get<std::string>("affine_out"), dims);
      for (std::size_t i = 0; i < 12; ++i)
        EXPECT_NEAR(sample.geometry().affine[i], expected[i], affine_tolerance) << "affine " << i;
      const std::array<double, 3> spacing = spacing_of(expected);
      for (std::size_t d = 0; d < 3 && name != "Rotated" && name != "Affined"; ++d)
        EXPECT_NEAR(sample.geometry().spacing_um[d], spacing[d], 0.01) << "spacing " << d;
    }
    transforms.insert(name);
  }
  EXPECT_EQ(transforms.size(), 31U);
  EXPECT_GE(compared, 300);
}

TEST(SpatialTransforms, GridsOfGivenOffsetsEqualMonai) {
  const test::Golden golden("spatial");
  int compared = 0;
  for (const test::GoldenCase& entry : golden.cases(283)) {
    if (!entry.node.has("grid")) continue;
    SCOPED_TRACE(entry.name);
    const at::Tensor offset = entry.tensor("offset"), affine = entry.tensor("affine");
    at::Tensor grid;
    if (entry.node.get<std::string>("grid") == "deform_2d") {
      const auto size = entry.options().get<std::vector<int64_t>>("size");
      const auto spacing = entry.options().get<std::vector<double>>("spacing");
      EXPECT_EQ(data::spatial::control_points(size, spacing), offset.sizes().slice(1).vec());
      grid = data::spatial::deform_2d(size, spacing, offset, affine);
    } else {
      grid = data::spatial::deform_3d(offset,
                                      entry.options().get<double>("sigma"),
                                      entry.options().get<double>("magnitude"),
                                      affine);
    }
    EXPECT_LT(test::relative_difference(grid, entry.tensor("out")), 1e-5);
    ++compared;
  }
  EXPECT_EQ(compared, 6);
}

/// The voxel of a row of n that sample_nearest() gives for the place p.
double nearest(double p, int64_t n, const std::string& padding_mode, bool align_corners = false) {
  const auto length = static_cast<double>(n);
  const double x = align_corners ? 2 * p / (length - 1) - 1 : (2 * p + 1) / length - 1;
  const at::Tensor row = at::arange(1, n + 1, at::kFloat).reshape({1, 1, 1, n});
  const at::Tensor point = at::tensor({x, 0.0}, at::kDouble).reshape({1, 1, 1, 2});
  return data::spatial::sample_nearest(row, point, padding_mode, align_corners).item<double>() - 1;
}

TEST(SampleNearest, TiesTakeTheEvenVoxelWhateverRoundingMadeOfThem) {
  for (const bool align_corners : {false, true}) {
    for (int64_t voxel = 0; voxel < 6; ++voxel) {
      const double middle = static_cast<double>(voxel) + 0.5;
      const double even = static_cast<double>(voxel + voxel % 2);
      for (const double noise : {0.0, 1e-9, -1e-9, 2e-7, -2e-7})
        EXPECT_EQ(nearest(middle + noise, 7, "border", align_corners), even) << middle + noise;
      EXPECT_EQ(nearest(middle - 1e-5, 7, "border", align_corners), static_cast<double>(voxel));
      EXPECT_EQ(nearest(middle + 1e-5, 7, "border", align_corners), static_cast<double>(voxel + 1));
    }
  }
}

TEST(SampleNearest, FollowsThePaddingBeyondTheImage) {
  EXPECT_EQ(nearest(-2.2, 5, "border"), 0);
  EXPECT_EQ(nearest(9.7, 5, "border"), 4);
  EXPECT_EQ(nearest(-2.2, 5, "zeros"), -1);  // a value of 0
  EXPECT_EQ(nearest(4.6, 5, "zeros"), -1);
  EXPECT_EQ(nearest(4.4, 5, "zeros"), 4);
  EXPECT_EQ(nearest(-2.2, 5, "reflection"), 1);  // at the edge: -0.5 - 1.7 is -0.5 + 1.7
  EXPECT_EQ(nearest(6.1, 5, "reflection"), 3);
  EXPECT_EQ(nearest(-13.2, 5, "reflection"), 2);
  EXPECT_EQ(nearest(-2.2, 5, "reflection", true), 2);  // at the outer centres
  EXPECT_EQ(nearest(5.9, 5, "reflection", true), 2);
  EXPECT_EQ(nearest(0, 1, "reflection"), 0);
  EXPECT_EQ(nearest(NAN, 5, "border"), 0);
}

TEST(Spacingd, ALabelsTiesDoNotDependOnTheUnit) {
  // Every second voxel of the result lies in the middle between two: with a spacing that is no
  // binary fraction, rounding alone would decide on it.
  const at::Tensor label = at::arange(31 * 29, at::kFloat).reshape({1, 31, 29});
  const auto resampled = [&](double scale) {
    data::Sample sample = sample_of(label);
    sample.geometries["image"].spacing_um = {0, 1000 * scale, 1000 * scale};
    Rng rng(0);
    const Transform step = make_transform(
        fmt::format("{{_target_: Spacingd, keys: image, pixdim: {}, mode: nearest}}", 1.5 * scale));
    step->apply(sample, rng);
    return sample.at("image");
  };
  at::Tensor expected = at::empty({1, 21, 20});  // 30 / 1.5 + 1, 28 / 1.5 + 1
  for (int64_t y = 0; y < 21; ++y) {
    for (int64_t x = 0; x < 20; ++x) {
      const auto voxel = [](int64_t i) {
        return std::nearbyint(1.5 * static_cast<double>(i));  // half to even
      };
      expected[0][y][x] = 29 * voxel(y) + voxel(x);
    }
  }
  for (const double scale : {1.0, 0.3, 0.7, 1.1, 1.0 / 3, 0.00065, 12.34})
    EXPECT_TRUE(resampled(scale).equal(expected)) << scale;
}

/// name and options of every random transform, for images of (1,12,10,11) or (1,12,10).
struct RandomCase {
  const char* text;
  bool flat = false;
};
const std::vector<RandomCase> kWithProb{
    {"_target_: RandAxisFlipd"},
    {"_target_: RandZoomd, mode: [bilinear, nearest]"},
    {"_target_: RandRotated, range_x: 0.5, range_z: 1, mode: [bilinear, nearest]"},
    {"_target_: RandAffined, rotate_range: [0.5, 0.1], translate_range: 2, mode: [bilinear, "
     "nearest]"},
    {"_target_: Rand2DElasticd, spacing: 4, magnitude_range: [1, 2], mode: [bilinear, nearest]",
     true},
    {"_target_: Rand3DElasticd, sigma_range: [1, 2], magnitude_range: [5, 9], mode: [bilinear, "
     "nearest]"},
    {"_target_: RandGridDistortiond, num_cells: 3, mode: [bilinear, nearest]"},
};

at::Tensor checkerboard(bool flat) {
  const at::Tensor image = at::arange(12 * 10 * 11, at::kFloat).reshape({1, 12, 10, 11});
  return flat ? image.select(3, 0) : image;
}

TEST(RandomSpatialTransforms, RespectProb) {
  for (const RandomCase& random : kWithProb) {
    SCOPED_TRACE(random.text);
    const std::string text(random.text);
    const Transform transform =
        make_transform("{" + text.substr(0, text.find(", mode")) + ", keys: image, prob: 0.3}");
    EXPECT_TRUE(transform->is_random());
    const at::Tensor image = checkerboard(random.flat);
    int changed = 0;
    for (int draw = 0; draw < kDraws; ++draw) {
      const at::Tensor result = applied(transform, image, static_cast<uint64_t>(draw));
      if (!result.is_same(image)) ++changed;
      EXPECT_EQ(result.sizes(), image.sizes());
    }
    // Four standard errors of a frequency of 0.3.
    EXPECT_NEAR(changed / static_cast<double>(kDraws), 0.3, 4 * std::sqrt(0.21 / kDraws));
  }
}

TEST(RandomSpatialTransforms, SameKeySameResultAndOneGridForAllKeys) {
  for (const RandomCase& random : kWithProb) {
    SCOPED_TRACE(random.text);
    const Transform transform =
        make_transform("{" + std::string(random.text) + ", keys: [image, label], prob: 1}");
    std::set<float> seen;
    for (uint64_t draw = 0; draw < 20; ++draw) {
      data::Sample one = sample_of(checkerboard(random.flat)), two = one;
      one.tensors["label"] = two.tensors["label"] = one.at("image");
      Rng first(5, 1, draw), second(5, 1, draw);
      transform->apply(one, first);
      transform->apply(two, second);
      EXPECT_TRUE(one.at("image").equal(two.at("image")));
      EXPECT_TRUE(one.at("label").equal(two.at("label")));
      // A label's voxels are among the image's, and near what is read between them.
      EXPECT_TRUE(one.at("label").equal(one.at("label").round()));
      const double apart = (one.at("image") - one.at("label")).abs().median().item<double>();
      EXPECT_LT(apart, 120);  // half a step along the first dimension is 55
      seen.insert(one.at("image").flatten()[3].item<float>());
    }
    EXPECT_GT(seen.size(), 1U);
  }
}

TEST(RandAxisFlipd, DrawsEveryAxisAlike) {
  const Transform transform = make_transform("{_target_: RandAxisFlipd, keys: image, prob: 1}");
  const at::Tensor image = positions({3, 4, 5});
  std::vector<int> count(3, 0);
  for (int draw = 0; draw < kDraws; ++draw) {
    const at::Tensor result = applied(transform, image, static_cast<uint64_t>(draw));
    for (int64_t d = 0; d < 3; ++d) count[static_cast<std::size_t>(d)] += slope(result, d, d) < 0;
  }
  for (const int flips : count) EXPECT_NEAR(flips, kDraws / 3, 4 * std::sqrt(kDraws * 2.0 / 9));
}

TEST(RandZoomd, DrawsItsFactors) {
  const at::Tensor image = positions({100, 100});
  std::vector<double> rows, columns;
  const Transform transform = make_transform(
      "{_target_: RandZoomd, keys: image, prob: 1, min_zoom: [0.5, 1], max_zoom: [1, 1.5], mode: "
      "bilinear, keep_size: false}");
  const Transform both = make_transform(
      "{_target_: RandZoomd, keys: image, prob: 1, min_zoom: 0.5, max_zoom: 1.5, keep_size: "
      "false}");
  for (int draw = 0; draw < kDraws; ++draw) {
    const at::Tensor result = applied(transform, image, static_cast<uint64_t>(draw));
    rows.push_back((static_cast<double>(result.size(1)) + 0.5) / 100);  // a size is rounded down
    columns.push_back((static_cast<double>(result.size(2)) + 0.5) / 100);
    if (draw >= 20) continue;
    const at::Tensor square = applied(both, image, static_cast<uint64_t>(draw));
    EXPECT_EQ(square.size(1), square.size(2));
  }
  expect_uniform(rows, 0.5, 1.005);
  expect_uniform(columns, 1, 1.505);
}

TEST(RandRotated, DrawsItsAngles) {
  const at::Tensor image = positions({15, 15});
  const Transform symmetric =
      make_transform("{_target_: RandRotated, keys: image, prob: 1, range_x: 0.6}");
  const Transform range =
      make_transform("{_target_: RandRotated, keys: image, prob: 1, range_x: [0.2, 0.9]}");
  std::vector<double> angles, positive;
  for (int draw = 0; draw < kDraws; ++draw) {
    const auto angle = [&](const Transform& transform) {
      const at::Tensor result = applied(transform, image, static_cast<uint64_t>(draw));
      return std::atan2(slope(result, 1, 0), slope(result, 0, 0));
    };
    angles.push_back(angle(symmetric));
    positive.push_back(angle(range));
  }
  expect_uniform(angles, -0.6, 0.6);
  expect_uniform(positive, 0.2, 0.9);
}

TEST(RandAffined, DrawsItsParameters) {
  const at::Tensor image = positions({15, 15});
  const std::string head = "{_target_: RandAffined, keys: image, prob: 1, padding_mode: border, ";
  const Transform shift = make_transform(head + "translate_range: [2, [1, 3]]}");
  const Transform scale = make_transform(head + "scale_range: [0.25, [0.1, 0.5]]}");
  const Transform turn = make_transform(head + "rotate_range: 0.5}");
  const Transform shear = make_transform(head + "shear_range: [[0, 0.4]]}");
  std::vector<double> values[6];
  for (int draw = 0; draw < kDraws; ++draw) {
    const auto number = static_cast<uint64_t>(draw);
    const at::Tensor shifted = applied(shift, image, number),
                     scaled = applied(scale, image, number);
    values[0].push_back(shifted[0][7][7].item<double>());
    values[1].push_back(shifted[1][7][7].item<double>());
    values[2].push_back(slope(scaled, 0, 0));
    values[3].push_back(slope(scaled, 1, 1));
    values[4].push_back(std::asin(slope(applied(turn, image, number), 1, 0)));
    values[5].push_back(slope(applied(shear, image, number), 0, 1));
  }
  expect_uniform(values[0], -2, 2);
  expect_uniform(values[1], 1, 3);
  expect_uniform(values[2], 0.75, 1.25);
  expect_uniform(values[3], 1.1, 1.5);
  expect_uniform(values[4], -0.5, 0.5);
  expect_uniform(values[5], 0, 0.4);
}

TEST(ElasticTransforms, MoveAsFarAsTheySay) {
  // Where the coarse points lie 5 voxels apart, an offset between them is a weighted mean of some:
  // its deviation is below that of one, which is magnitude.
  const at::Tensor flat = positions({41, 41});
  const Transform two = make_transform(
      "{_target_: Rand2DElasticd, keys: image, prob: 1, spacing: 5, magnitude_range: [2, 2], "
      "padding_mode: border}");
  std::vector<double> moved;
  for (int draw = 0; draw < kDraws; ++draw)
    moved.push_back(applied(two, flat, static_cast<uint64_t>(draw))[0][20][20].item<double>());
  Moments moments(moved);
  EXPECT_NEAR(moments.mean, 0, 4 * moments.deviation / std::sqrt(kDraws));
  EXPECT_GT(moments.deviation, 0.8);
  EXPECT_LT(moments.deviation, 2.1);
  // In 3D: uniform in [-1, 1], smoothed by a Gaussian of 1 voxel, times magnitude. A mean with
  // weights w has the deviation sqrt(sum w^2 / 3); the weights of one axis are those of erf.
  double squares = 0;
  for (int x = -3; x <= 3; ++x) {
    const double w =
        0.5 * (std::erf((x + 0.5) / std::sqrt(2)) - std::erf((x - 0.5) / std::sqrt(2)));
    squares += w * w;
  }
  const at::Tensor volume = positions({9, 9, 9});
  const Transform three = make_transform(
      "{_target_: Rand3DElasticd, keys: image, prob: 1, sigma_range: [1, 1], magnitude_range: [4, "
      "4], padding_mode: border}");
  moved.clear();
  for (int draw = 0; draw < kDraws; ++draw)
    moved.push_back(applied(three, volume, static_cast<uint64_t>(draw))[2][4][4][4].item<double>());
  moments = Moments(moved);
  EXPECT_NEAR(moments.mean, 0, 4 * moments.deviation / std::sqrt(kDraws));
  EXPECT_NEAR(moments.deviation, 4 * std::sqrt(squares * squares * squares / 3), 0.05);
}

TEST(GridDistortiond, EachKeyHasCellsOfItsOwnSize) {
  const auto transform = make_transform(
      "{_target_: GridDistortiond, keys: [image, label], num_cells: 2, distort_steps: [[1.5, 1, "
      "1], "
      "[0.8, 1, 1]]}");
  data::Sample both, alone;
  both.tensors["image"] = at::arange(256, at::kFloat).view({1, 16, 16});
  both.tensors["label"] = alone.tensors["label"] = at::arange(64, at::kFloat).view({1, 8, 8});
  Rng rng(0);
  transform->apply(both, rng);
  EXPECT_EQ(both.at("label").sizes(), (std::vector<int64_t>{1, 8, 8}));
  make_transform(
      "{_target_: GridDistortiond, keys: label, num_cells: 2, distort_steps: [[1.5, 1, 1], [0.8, "
      "1, "
      "1]]}")
      ->apply(alone, rng);
  EXPECT_TRUE(both.at("label").equal(alone.at("label")));
  EXPECT_NE(
      message_of<ConfigError>([] {
        make_transform(
            "{_target_: GridDistortiond, keys: image, num_cells: [], distort_steps: [[1, 1]]}");
      }).find("num_cells"),
      std::string::npos);
}

TEST(RandGridDistortiond, DrawsItsSteps) {
  const at::Tensor image = positions({12, 12});
  const Transform transform = make_transform(
      "{_target_: RandGridDistortiond, keys: image, prob: 1, num_cells: 2, distort_limit: [-0.2, "
      "0.1]}");
  std::vector<double> steps;
  for (int draw = 0; draw < kDraws; ++draw) {
    const at::Tensor result = applied(transform, image, static_cast<uint64_t>(draw));
    // A cell of 6 voxels: its points are 6 * step / 5 apart.
    steps.push_back((result[0][2][6] - result[0][1][6]).item<double>() * 5 / 6);
  }
  expect_uniform(steps, 0.8, 1.1);
}

/// The places that crops of one voxel come from, as often as they do.
std::map<int64_t, int> places(const Transform& transform, data::Sample sample) {
  std::map<int64_t, int> count;
  const data::Sample given = sample;
  for (int draw = 0; draw < kDraws; ++draw) {
    sample = given;
    Rng rng(9, 2, static_cast<uint64_t>(draw));
    transform->apply(sample, rng);
    EXPECT_EQ(sample.at("image").numel(), 1);
    ++count[sample.at("image").item<int64_t>()];
  }
  return count;
}

/// 30 voxels that hold their place; the label of (5,6) is made from text, a digit per voxel.
data::Sample numbered(const std::string& digits) {
  data::Sample sample = sample_of(at::arange(30, at::kFloat).reshape({1, 5, 6}));
  at::Tensor label = at::zeros({30});
  for (std::size_t i = 0; i < digits.size(); ++i) label[static_cast<int64_t>(i)] = digits[i] - '0';
  sample.tensors["label"] = label.reshape({1, 5, 6});
  return sample;
}

void expect_share(const std::map<int64_t, int>& count,
                  const std::set<int64_t>& voxels,
                  double share) {
  double sum = 0;
  for (const int64_t voxel : voxels) {
    const auto place = count.find(voxel);
    const double one = place == count.end() ? 0 : place->second;
    const double expected = share * kDraws / static_cast<double>(voxels.size());
    EXPECT_NEAR(one, expected, 5 * std::sqrt(expected)) << "voxel " << voxel;
    sum += one;
  }
  EXPECT_NEAR(sum / kDraws, share, 4 * std::sqrt(share * (1 - share) / kDraws) + 1e-9);
}

TEST(RandCropByPosNegLabeld, DrawsForegroundAsOftenAsItSays) {
  const data::Sample sample = numbered("000100200000000000000000000001");
  const std::set<int64_t> foreground{3, 6, 29};
  std::set<int64_t> background;
  for (int64_t i = 0; i < 30; ++i) {
    if (foreground.count(i) == 0) background.insert(i);
  }
  const std::string head =
      "{_target_: RandCropByPosNegLabeld, keys: [image, label], label_key: label, spatial_size: "
      "1, ";
  const Transform transform = make_transform(head + "pos: 1, neg: 3, num_samples: 4}");
  EXPECT_EQ(transform->num_samples(), 4);
  auto count = places(transform, sample);
  expect_share(count, foreground, 0.25);
  expect_share(count, background, 0.75);
  count = places(make_transform(head + "image_key: image, image_threshold: 26}"), sample);
  expect_share(count, foreground, 0.5);
  expect_share(count, {27, 28}, 0.5);
  expect_share(
      places(make_transform(head + "pos: 9}"), numbered("")), {0, 7, 29}, 0.1);  // no foreground
}

TEST(RandCropByLabelClassesd, DrawsClassesByRatio) {
  const data::Sample sample = numbered("111112222300000000000000000000");
  const std::string head =
      "{_target_: RandCropByLabelClassesd, keys: image, label_key: label, spatial_size: 1, ";
  auto count = places(make_transform(head + "num_classes: 5, ratios: [0, 1, 2, 0, 7]}"), sample);
  expect_share(count, {0, 1, 2, 3, 4}, 1.0 / 3);  // class 4 is not there
  expect_share(count, {5, 6, 7, 8}, 2.0 / 3);
  count = places(make_transform(head + "num_classes: 4, image_key: image, image_threshold: 4}"),
                 sample);
  expect_share(count, {5, 6, 7, 8}, 1.0 / 3);
  expect_share(count, {9}, 1.0 / 3);
}

TEST(RandWeightedCropd, DrawsByWeight) {
  data::Sample sample = numbered("");
  at::Tensor weights = at::zeros({30});
  weights[1] = 1.0;
  weights[8] = 3.0;
  sample.tensors["w"] = weights.reshape({1, 5, 6});
  const Transform transform = make_transform(
      "{_target_: RandWeightedCropd, keys: image, w_key: w, spatial_size: 1, num_samples: 2}");
  EXPECT_EQ(transform->num_samples(), 2);
  const auto count = places(transform, sample);
  expect_share(count, {1}, 0.25);
  expect_share(count, {8}, 0.75);
  sample.tensors["w"] = at::zeros({1, 5, 6});  // as MONAI: all but the last row and column
  std::set<int64_t> all;
  for (const int64_t i : {0, 1, 2, 3, 4, 6, 10, 18, 22}) all.insert(i);
  expect_share(places(transform, sample), all, 9.0 / 20);
}

TEST(LabelCrops, StayInsideTheImage) {
  const Transform transform = make_transform(
      "{_target_: RandCropByPosNegLabeld, keys: [image, label], label_key: label, spatial_size: "
      "[4, "
      "3, 5]}");
  std::set<float> corners;
  for (uint64_t draw = 0; draw < 200; ++draw) {
    data::Sample sample = sample_of(at::arange(6 * 7 * 8, at::kFloat).reshape({1, 6, 7, 8}));
    sample.tensors["label"] = sample.at("image").remainder(5).eq(0).to(at::kFloat);
    Rng rng(1, 0, draw);
    transform->apply(sample, rng);
    EXPECT_EQ(sample.at("image").sizes(), (std::vector<int64_t>{1, 4, 3, 5}));
    EXPECT_TRUE(sample.at("image").remainder(5).eq(0).to(at::kFloat).equal(sample.at("label")));
    corners.insert(sample.at("image").flatten()[0].item<float>());
  }
  EXPECT_GT(corners.size(), 20U);
  EXPECT_EQ(*corners.begin(), 0);
}

TEST(RandomMultiScaleCropd, CropsTheSamePlaceAtEveryScale) {
  const Transform transform = make_transform(
      "{_target_: cyto_dl.image.transforms.RandomMultiScaleCropd, keys: [raw, seg, flat], "
      "patch_shape: [2, 4, 6], patch_per_image: 3, scales_dict: {raw: 1, seg: [1, 0.5, 0.5], flat: "
      "[1], other: 7}}");
  EXPECT_EQ(transform->num_samples(), 3);
  std::set<int64_t> rows;
  for (uint64_t draw = 0; draw < 500; ++draw) {
    data::Sample sample;
    sample.tensors["raw"] = positions({5, 20, 24}) + 100;
    sample.tensors["seg"] = positions({5, 10, 12});
    sample.tensors["flat"] = positions({20, 24}) + 100;
    Rng rng(1, 0, draw);
    transform->apply(sample, rng);
    EXPECT_EQ(sample.at("raw").sizes(), (std::vector<int64_t>{3, 2, 4, 6}));
    EXPECT_EQ(sample.at("seg").sizes(), (std::vector<int64_t>{3, 2, 2, 3}));
    EXPECT_EQ(sample.at("flat").sizes(), (std::vector<int64_t>{2, 4, 6}));
    EXPECT_TRUE(sample.at("raw").select(1, 0).slice(0, 1).equal(sample.at("flat")));
    const auto row = static_cast<int64_t>(sample.at("raw")[1].min().item<float>() - 90.5F);
    const auto seg_row = static_cast<int64_t>(sample.at("seg")[1].min().item<float>() + 4.5F);
    EXPECT_EQ(seg_row, row / 2);
    rows.insert(row);
  }
  // CytoDL: floor(10 / 0.5) - floor(4 / 0.5) = 12 first rows, 20 - 4 = 16 for raw.
  EXPECT_EQ(rows.size(), 12U);
  EXPECT_EQ(*rows.rbegin(), 11);
  data::Sample small;
  small.tensors["raw"] = at::zeros({1, 1, 20, 24});
  Rng rng(0);
  EXPECT_THROW(
      make_transform("{_target_: RandomMultiScaleCropd, keys: raw, patch_shape: [2, 4, 6], "
                     "scales_dict: {raw: 1}}")
          ->apply(small, rng),
      DataError);
  EXPECT_THROW(
      make_transform(
          "{_target_: RandomMultiScaleCropd, keys: raw, patch_shape: [2, 4], scales_dict: {a: 1}}"),
      ConfigError);
}

TEST(RandomMultiScaleCropd, CropsWholeAboveScaleOne) {
  const Transform transform = make_transform(
      "{_target_: RandomMultiScaleCropd, keys: image, patch_shape: [4, 4], scales_dict: {image: "
      "2}}");
  for (uint64_t draw = 0; draw < 200; ++draw) {
    EXPECT_EQ(applied(transform, at::zeros({1, 20, 20}), draw).sizes(),
              (std::vector<int64_t>{1, 8, 8}));
  }
}

TEST(Spacingd, ResamplesMicroscopesImagesAndKeepsTheGeometry) {
  data::Sample sample = sample_of(at::rand({1, 4, 10, 10}));
  sample.geometries["image"].spacing_um = {1.0, 0.2, 0.2};
  Rng rng(0);
  // MONAI's tolerance of 0.001 mm would leave this image as it is.
  make_transform("{_target_: Spacingd, keys: image, pixdim: [-1, 0.0001, 0.0004]}")
      ->apply(sample, rng);
  EXPECT_EQ(sample.at("image").sizes(), (std::vector<int64_t>{1, 4, 19, 6}));
  EXPECT_NEAR(sample.geometries["image"].spacing_um[0], 1.0, 1e-12);
  EXPECT_NEAR(sample.geometries["image"].spacing_um[1], 0.1, 1e-12);
  EXPECT_NEAR(sample.geometries["image"].spacing_um[2], 0.4, 1e-12);
  sample.geometries["image"].spacing_um = {0, 0, 0};
  EXPECT_THROW(make_transform("{_target_: Spacingd, keys: image, pixdim: 1}")->apply(sample, rng),
               DataError);
  make_transform("{_target_: Spacingd, keys: image, pixdim: 0}")->apply(sample, rng);
  EXPECT_EQ(sample.at("image").sizes(), (std::vector<int64_t>{1, 4, 19, 6}));  // as it is
}

TEST(Geometry, FollowsResizingAndTurning) {
  data::Sample sample = sample_of(at::rand({1, 4, 10, 20}));
  sample.geometries["image"].spacing_um = {2, 1, 0.5};
  Rng rng(0);
  make_transform("{_target_: Resized, keys: image, spatial_size: [8, 10, 10]}")->apply(sample, rng);
  EXPECT_EQ(sample.geometries["image"].spacing_um, (std::array<double, 3>{1, 1, 1}));
  make_transform("{_target_: Zoomd, keys: image, zoom: [1, 2, 0.5]}")->apply(sample, rng);
  EXPECT_EQ(sample.geometries["image"].spacing_um, (std::array<double, 3>{1, 0.5, 2}));
  make_transform("{_target_: Rotate90d, keys: image, spatial_axes: [0, 2]}")->apply(sample, rng);
  EXPECT_EQ(sample.geometries["image"].spacing_um, (std::array<double, 3>{2, 0.5, 1}));
  sample = sample_of(at::rand({1, 6, 8}));
  sample.geometries["image"].spacing_um = {0, 1, 2};
  make_transform("{_target_: Rotate90d, keys: image}")->apply(sample, rng);
  EXPECT_EQ(sample.geometries["image"].spacing_um, (std::array<double, 3>{0, 2, 1}));
}

TEST(Geometry, FollowsRandomTransforms) {
  // The voxel that is brightest lies where it was, whatever was drawn.
  for (const char* text :
       {"_target_: RandSpatialCropd, keys: image, roi_size: [4, 5, 6]",
        "_target_: RandSpatialCropSamplesd, keys: image, roi_size: [4, 5, 6], "
        "random_size: true",
        "_target_: RandFlipd, keys: image, prob: 1, spatial_axis: [0, 2]",
        "_target_: RandAxisFlipd, keys: image, prob: 1",
        "_target_: RandRotate90d, keys: image, prob: 1, spatial_axes: [0, 2]",
        "_target_: RandZoomd, keys: image, prob: 1, min_zoom: 3, max_zoom: 3, "
        "mode: nearest, keep_size: false",
        "_target_: RandWeightedCropd, keys: image, w_key: image, spatial_size: 5",
        "_target_: RandomMultiScaleCropd, keys: image, patch_shape: [4, 5, 6], "
        "scales_dict: {image: 1}"}) {
    SCOPED_TRACE(text);
    const Transform transform = make_transform("{" + std::string(text) + "}");
    int seen = 0;
    for (uint64_t draw = 0; draw < 30; ++draw) {
      at::Tensor image = at::zeros({1, 7, 8, 9});
      image[0][3][4][5] = 1;
      data::Sample sample = sample_of(image);
      sample.geometries["image"].spacing_um = {3000, 2000, 1000};
      sample.geometries["image"].affine = {1, 0, 0, 10, 0, -2, 0, 20, 0, 0, 3, 30};
      Rng rng(6, 0, draw);
      transform->apply(sample, rng);
      const at::Tensor place = sample.at("image")[0].nonzero().to(at::kDouble);
      if (place.size(0) == 0) continue;  // cropped away
      ++seen;
      const at::Tensor voxel = place.mean(0).flip(0);  // x,y,z; of a zoom by 3, 27 voxels' centre
      const auto& affine = sample.geometries["image"].affine;
      const std::array<double, 3> world{15, 12, 39};
      for (std::size_t row = 0; row < 3; ++row) {
        double sum = affine[4 * row + 3];
        for (std::size_t i = 0; i < 3; ++i)
          sum += affine[4 * row + i] * voxel[static_cast<int64_t>(i)].item<double>();
        EXPECT_NEAR(sum, world[row], 1e-9);
      }
      EXPECT_NEAR(sample.geometries["image"].spacing_um[0] *
                      sample.geometries["image"].spacing_um[1] *
                      sample.geometries["image"].spacing_um[2],
                  std::string(text).find("Zoom") != std::string::npos ? 6e9 / 27 : 6e9,
                  1);
    }
    EXPECT_GT(seen, 3);
  }
}

TEST(Turn, MovesVoxelsOfEveryTypeAsTorch) {
  for (const at::ScalarType type :
       {at::kByte, at::kShort, at::kUInt16, at::kFloat, at::kDouble, at::kInt}) {
    const at::Tensor whole = at::arange(2 * 40 * 37 * 35).reshape({2, 40, 37, 35});
    const at::Tensor crop = whole.narrow(1, 3, 20).narrow(2, 5, 18).narrow(3, 1, 33);
    const at::Tensor image = whole.to(type).narrow(1, 3, 20).narrow(2, 5, 18).narrow(3, 1, 33);
    const auto expect_same = [&](const data::spatial::Turn& turn, const at::Tensor& expected) {
      const at::Tensor result = data::spatial::turned(image, turn);
      EXPECT_EQ(result.scalar_type(), type);
      EXPECT_TRUE(result.is_contiguous());
      EXPECT_TRUE(result.to(at::kDouble).equal(expected.to(type).to(at::kDouble)));
    };
    for (const std::vector<int64_t>& axes :
         {std::vector<int64_t>{0}, {1}, {2}, {0, 2}, {0, 1, 2}, {-1, -2}}) {
      std::vector<int64_t> dims;
      for (const int64_t axis : axes) dims.push_back(axis < 0 ? axis : axis + 1);
      expect_same(data::spatial::mirror("test", axes, 3), crop.flip(dims));
    }
    for (int64_t k = -1; k < 6; ++k) {
      for (const auto& plane : {std::array<int64_t, 2>{0, 1}, {1, 2}, {2, 0}, {2, 1}}) {
        const auto turn = data::spatial::quarter_turns("test", {plane[0], plane[1]}, k, 3);
        if (k % 4 == 0) {
          EXPECT_TRUE(data::spatial::turned(image, turn).is_same(image));
        } else {
          expect_same(turn, crop.rot90(k, {plane[0] + 1, plane[1] + 1}));
        }
      }
    }
  }
  EXPECT_THROW(data::spatial::quarter_turns("test", {1, -1}, 1, 2), ConfigError);
}

TEST(SpatialTransforms, OnlyMoveWhatIsStored) {
  data::Sample sample = sample_of(at::arange(30 * 40).to(at::kUInt16).reshape({1, 30, 40}));
  sample.tensors["label"] = at::arange(30 * 40).remainder(7).to(at::kByte).reshape({1, 30, 40});
  const at::Tensor given = sample.stored("image");
  Rng rng(2);
  make_transform("{_target_: RandSpatialCropd, keys: [image, label], roi_size: [20, 24]}")
      ->apply(sample, rng);
  EXPECT_EQ(sample.stored("image").storage().data(), given.storage().data());  // a view
  for (const char* text : {"_target_: RandFlipd, prob: 1",
                           "_target_: RandRotate90d, prob: 1",
                           "_target_: CenterSpatialCropd, roi_size: 18",
                           "_target_: SpatialPadd, spatial_size: 19",
                           "_target_: BorderPadd, spatial_border: 1, mode: reflect",
                           "_target_: RandCropByPosNegLabeld, label_key: label, spatial_size: 15",
                           "_target_: RandCropByLabelClassesd, label_key: label, num_classes: 300, "
                           "spatial_size: 12"}) {
    make_transform("{keys: [image, label], " + std::string(text) + "}")->apply(sample, rng);
    EXPECT_EQ(sample.stored("image").scalar_type(), at::kUInt16) << text;
    EXPECT_EQ(sample.stored("label").scalar_type(), at::kByte) << text;
  }
  EXPECT_EQ(sample.stored("image").sizes(), (std::vector<int64_t>{1, 12, 12}));
  make_transform("{_target_: SpatialPadd, keys: image, spatial_size: 14, value: -3.5}")
      ->apply(sample, rng);
  EXPECT_EQ(sample.stored("image")[0][0][0].item<float>(), -3.5F);
}

TEST(LabelLists, DrawTheSameCropsAsTheLabel) {
  const std::string crop = "keys: [image, label], label_key: label, spatial_size: 3, ";
  struct Pair {
    std::string list, with_list, without;
  };
  for (const Pair& pair :
       {Pair{"_target_: FgBgToIndicesd, keys: label",
             "_target_: RandCropByPosNegLabeld, pos: 2, fg_indices_key: label_fg_indices, "
             "bg_indices_key: label_bg_indices",
             "_target_: RandCropByPosNegLabeld, pos: 2"},
        Pair{"_target_: FgBgToIndicesd, keys: label, image_key: image, image_threshold: 200, "
             "fg_postfix: _f, bg_postfix: _b",
             "_target_: RandCropByPosNegLabeld, fg_indices_key: label_f, bg_indices_key: label_b",
             "_target_: RandCropByPosNegLabeld, image_key: image, image_threshold: 200"},
        Pair{"_target_: ClassesToIndicesd, keys: label, num_classes: 4",
             "_target_: RandCropByLabelClassesd, num_classes: 4, ratios: [1, 0, 3, 1], "
             "indices_key: label_cls_indices",
             "_target_: RandCropByLabelClassesd, num_classes: 4, ratios: [1, 0, 3, 1]"}}) {
    SCOPED_TRACE(pair.with_list);
    data::Sample given = sample_of(at::arange(7 * 80 * 90, at::kFloat).reshape({1, 7, 80, 90}));
    at::manual_seed(1);
    given.tensors["label"] =
        (at::randint(3, {1, 7, 80, 90}) * at::rand({1, 7, 80, 90}).gt(0.9)).to(at::kByte);
    data::Sample listed = given;
    Rng unused(0);
    const Transform list = make_transform("{" + pair.list + "}");
    EXPECT_FALSE(list->is_random());
    list->apply(listed, unused);
    std::set<float> corners;
    for (uint64_t draw = 0; draw < 50; ++draw) {
      data::Sample one = given, two = listed;
      Rng first(1, 2, draw), second(1, 2, draw);
      make_transform("{" + crop + pair.without + "}")->apply(one, first);
      make_transform("{" + crop + pair.with_list + "}")->apply(two, second);
      EXPECT_TRUE(one.at("image").equal(two.at("image")));
      EXPECT_EQ(two.tensors.size(), 2U) << "lists are taken out";
      corners.insert(one.at("image").flatten()[0].item<float>());
    }
    EXPECT_GT(corners.size(), 30U);
  }
}

TEST(SpatialTransforms, SayWhatIsWrong) {
  for (const char* text : {
           "{_target_: SpatialPadd, keys: image}",
           "{_target_: SpatialPadd, keys: image, spatial_size: 9, mode: mirror}",
           "{_target_: SpatialPadd, keys: image, spatial_size: 9, mode: [edge, edge]}",
           "{_target_: Resized, keys: image, spatial_size: [9, 9], size_mode: longest}",
           "{_target_: Resized, keys: image, spatial_size: 9, mode: cubic}",
           "{_target_: Zoomd, keys: image, zoom: 0}",
           "{_target_: Rotate90d, keys: image, spatial_axes: [0]}",
           "{_target_: Rotated, keys: image, angle: 1, rotate_order: XXY}",
           "{_target_: Affined, keys: image, mode: linear}",
           "{_target_: Affined, keys: image, affine: [[1, 0], [0, 1]]}",
           "{_target_: RandAffined, keys: image, rotate_range: [[1, 2, 3]]}",
           "{_target_: RandCropByPosNegLabeld, keys: image, label_key: a, spatial_size: 3, pos: 0, "
           "neg: 0}",
           "{_target_: Rand2DElasticd, keys: image, spacing: 0, magnitude_range: [1, 2]}",
           "{_target_: Rand3DElasticd, keys: image, sigma_range: 3, magnitude_range: [1, 2]}",
           "{_target_: GridDistortiond, keys: image, num_cells: 3, distort_steps: [[1, 1, 1], "
           "[1]]}",
       }) {
    EXPECT_THROW(make_transform(text), ConfigError) << text;
  }
  const auto error = [](const std::string& text) -> std::string {
    data::Sample sample = sample_of(at::zeros({1, 13, 11}));
    sample.tensors["label"] = at::zeros({1, 13, 11});
    Rng rng(0);
    try {
      make_transform(text)->apply(sample, rng);
    } catch (const ConfigError& problem) {
      return std::string("config: ") + problem.what();
    } catch (const DataError& problem) {
      return std::string("data: ") + problem.what();
    }
    return "";
  };
  const auto expect_has = [&](const std::string& text, const std::string& part) {
    EXPECT_NE(error(text).find(part), std::string::npos) << text << ": " << error(text);
  };
  expect_has("{_target_: Flipd, keys: image, spatial_axis: 2}", "config: spatial_axis: no");
  expect_has("{_target_: Flipd, keys: imag}", "Did you mean 'image'?");
  EXPECT_EQ(error("{_target_: Flipd, keys: [imag, image], allow_missing_keys: true}"), "");
  expect_has("{_target_: SpatialPadd, keys: image, spatial_size: [1, 2, 3]}", "3 numbers");
  expect_has("{_target_: CropForegroundd, keys: image, source_key: image}", "data: a.tif");
  expect_has("{_target_: Rotated, keys: image, angle: [1, 2, 3]}", "config: angle");
  expect_has("{_target_: Zoomd, keys: image, zoom: 0.01}", "data: a.tif: 'image'");
  expect_has(
      "{_target_: Rand3DElasticd, keys: image, sigma_range: [1, 2], magnitude_range: [1, 2], "
      "prob: 1}",
      "data: a.tif: 2 spatial dimensions");
  expect_has(
      "{_target_: GridDistortiond, keys: image, num_cells: 9, distort_steps: [[1, 1, 1, 1, 1, "
      "1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]]}",
      "too few for 9 cells");
  const std::string crop =
      "_target_: RandCropByPosNegLabeld, keys: image, label_key: label, spatial_size: [20, 4]";
  expect_has("{" + crop + "}", "allow_smaller");
  EXPECT_EQ(error("{" + crop + ", allow_smaller: true}"), "");
  expect_has("{_target_: RandCropByLabelClassesd, keys: image, label_key: label, spatial_size: 3}",
             "num_classes");
  expect_has(
      "{_target_: RandCropByPosNegLabeld, keys: image, label_key: label, spatial_size: 3, "
      "fg_indices_key: image, bg_indices_key: label}",
      "no list of voxels");
  expect_has(
      "{_target_: RandCropByLabelClassesd, keys: image, label_key: label, spatial_size: 3, "
      "num_classes: 3, ratios: [0, 1, 1]}",
      "no class");
}

}  // namespace
}  // namespace cytra
