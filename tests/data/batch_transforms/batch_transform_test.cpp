// Transforms of batches: what they do to a sample is what the transform of single images does with
// the same stream, whatever else is in the batch.
#include "data/loader/batch_transform.h"

#include <cmath>
#include <set>

#include <ATen/ATen.h>

#include "base/error.h"
#include "config/registry.h"
#include "data/batch_transforms/keyed_random.h"
#include "data/sample/sample.h"
#include "tests/support/golden.h"

namespace cytra {
namespace {

constexpr int64_t kSamples = 7;

template <class T>
std::shared_ptr<T> make_in_braces(const std::string& text) {
  return cytra::make<T>("{" + text + "}");
}

data::Batch batch_of(const std::vector<int64_t>& size) {
  at::manual_seed(4);
  data::Batch batch;
  std::vector<int64_t> shape{kSamples, 2};
  shape.insert(shape.end(), size.begin(), size.end());
  batch.tensors["image"] = at::rand(shape);
  shape[1] = 1;
  batch.tensors["label"] = at::randint(4, shape).to(at::kFloat);
  batch.ids.assign(kSamples, "a.tif");
  return batch;
}

data::Batch part_of(const data::Batch& batch, const std::vector<int64_t>& rows) {
  data::Batch part;
  for (const auto& [key, images] : batch.tensors)
    part.tensors[key] = images.index_select(0, at::tensor(rows, at::kLong));
  part.ids.assign(rows.size(), "a.tif");
  return part;
}

std::vector<Rng> streams(const std::vector<int64_t>& rows) {
  std::vector<Rng> rngs;
  for (const int64_t row : rows) rngs.emplace_back(3, 1, static_cast<uint64_t>(row));
  return rngs;
}

struct Case {
  const char* text;
  std::vector<int64_t> size;
};
const std::vector<int64_t> kPlane{13, 11}, kSquare{12, 12}, kStack{7, 9, 8};
const char* const kModes = ", mode: [bilinear, nearest]";
const std::vector<Case> kCases{
    {"_target_: RandFlipd, spatial_axis: 0", kPlane},
    {"_target_: RandFlipd", kStack},
    {"_target_: RandAxisFlipd", kStack},
    {"_target_: RandRotate90d", kSquare},
    {"_target_: RandRotate90d, spatial_axes: [0, 2]", {5, 6, 5}},
    {"_target_: RandAffined, rotate_range: 0.6, shear_range: [0.1, 0.2], translate_range: [2, 1], "
     "scale_range: 0.2",
     kPlane},
    {"_target_: RandAffined, rotate_range: [0.6, 0.4, 1], translate_range: 2, padding_mode: zeros",
     kStack},
    {"_target_: Rand2DElasticd, spacing: [4, 3], magnitude_range: [1, 2], rotate_range: 0.3, "
     "padding_mode: border",
     kPlane},
    {"_target_: Rand3DElasticd, sigma_range: [0.5, 2], magnitude_range: [2, 5], scale_range: 0.2",
     kStack},
    {"_target_: RandGaussianSmoothd", kPlane},
    {"_target_: RandGaussianSmoothd, sigma_z: [1, 3], approx: scalespace", kStack},
    {"_target_: RandGaussianNoised, mean: 0.2, std: 0.5, keys: image", kPlane},
    {"_target_: RandGaussianNoised, sample_std: false, keys: image", kStack},
    {"_target_: RandAdjustContrastd", kPlane},
    {"_target_: RandAdjustContrastd, invert_image: true, retain_stats: true", kStack},
};

/// With the keys, and a mode for each where there is one.
std::string with_keys(const Case& one, const char* prob) {
  std::string text = one.text;
  if (text.find("keys") == std::string::npos) text += ", keys: [image, label]";
  const bool samples = text.find("Affine") + 1 || text.find("Elastic") + 1;
  return text + (samples ? kModes : "") + ", prob: " + prob;
}

TEST(BatchTransforms, EqualThoseOfSingleImages) {
  for (const Case& one : kCases) {
    SCOPED_TRACE(one.text);
    const std::string text = with_keys(one, "0.7");
    data::Batch batch = batch_of(one.size);
    const data::Batch before = batch;
    std::vector<int64_t> all(kSamples);
    for (int64_t i = 0; i < kSamples; ++i) all[static_cast<std::size_t>(i)] = i;
    std::vector<Rng> rngs = streams(all);
    make_in_braces<data::BatchTransform>(text)->apply(batch, rngs);
    const auto single = make_in_braces<data::Transform>(text);
    int changed = 0;
    for (int64_t i = 0; i < kSamples; ++i) {
      data::Sample sample;
      for (const auto& [key, images] : before.tensors) sample.tensors[key] = images[i];
      Rng rng = streams({i})[0];
      single->apply(sample, rng);
      changed += !sample.at("image").equal(before.at("image")[i]);
      // float32 coordinates of 13 voxels, and another order of sums.
      EXPECT_LT(test::max_difference(batch.at("image")[i], sample.at("image")), 1e-5) << i;
      EXPECT_LT(test::max_difference(batch.at("label")[i], sample.at("label")), 1e-5) << i;
      EXPECT_EQ(rng.next(), rngs[static_cast<std::size_t>(i)].next()) << "draws used";
    }
    EXPECT_GT(changed, 1);
    EXPECT_LT(changed, kSamples);
    EXPECT_TRUE(before.at("image").equal(batch_of(one.size).at("image"))) << "written to";
  }
}

TEST(BatchTransforms, DoNotDependOnTheRestOfTheBatch) {
  for (const Case& one : kCases) {
    SCOPED_TRACE(one.text);
    const auto transform = make_in_braces<data::BatchTransform>(with_keys(one, "0.7"));
    const data::Batch given = batch_of(one.size);
    data::Batch whole = given, part = part_of(given, {5, 2, 0});
    std::vector<Rng> all = streams({0, 1, 2, 3, 4, 5, 6}), some = streams({5, 2, 0});
    transform->apply(whole, all);
    transform->apply(part, some);
    for (const char* key : {"image", "label"}) {
      const at::Tensor expected = part_of(whole, {5, 2, 0}).at(key);
      EXPECT_LT(test::max_difference(part.at(key), expected), 1e-6) << key;
    }
  }
}

TEST(BatchTransforms, DrawAnewForEachTransformAndKey) {
  const data::BatchTransforms twice{
      make_in_braces<data::BatchTransform>("_target_: RandGaussianNoised, keys: image, prob: 1"),
      make_in_braces<data::BatchTransform>("_target_: RandGaussianNoised, keys: image, prob: 1")};
  data::Batch batch = batch_of(kPlane);
  const at::Tensor before = batch.at("image");
  const std::vector<uint64_t> keys{1, 2, 3, 4, 5, 6, 1};
  data::Batch once = batch;
  data::apply_all({twice[0]}, once, keys);
  data::apply_all(twice, batch, keys);
  const at::Tensor first = once.at("image") - before, second = batch.at("image") - once.at("image");
  EXPECT_GT(test::max_difference(first, second), 0.01);
  EXPECT_GT(test::max_difference(first[0], first[1]), 0.01);
  EXPECT_LT(test::max_difference(first[0], first[6]), 1e-6);  // one key, one noise
}

TEST(BatchTransforms, RandomNumbersOnDevicesAreThoseOfRng) {
  Rng one(7, 1), two(8, 2);
  one.next();
  const std::vector<Rng::Span> spans{Rng(one).take(5), Rng(two).take(5)};
  const at::Tensor values = data::uniforms(spans, 5, at::kCPU);
  for (int64_t i = 0; i < 5; ++i) {
    EXPECT_EQ(values[0][i].item<double>(), one.uniform());
    EXPECT_EQ(values[1][i].item<double>(), two.uniform());
  }
  Rng three(9);
  const at::Tensor normal = data::normals({Rng(three).take(6)}, 3, at::kCPU);
  for (int64_t i = 0; i < 3; ++i) EXPECT_NEAR(normal[0][i].item<double>(), three.normal(), 1e-12);
}

TEST(MixUpd, MixesEveryKeyAlike) {
  const auto transform =
      make_in_braces<data::BatchTransform>("_target_: MixUpd, keys: [image, label]");
  data::Batch batch = batch_of(kPlane);
  // Sample i is i everywhere, and has the label 10^i: a mixture tells of whom.
  const at::Tensor number = at::arange(kSamples, at::kFloat).reshape({-1, 1, 1, 1});
  batch.tensors["image"] = number.expand({kSamples, 2, 13, 11});
  batch.tensors["label"] = at::pow(at::full_like(number, 2), number).expand({kSamples, 1, 13, 11});
  std::set<int64_t> partners;
  double sum = 0, squares = 0;
  constexpr int kBatches = 300;
  for (int b = 0; b < kBatches; ++b) {
    data::Batch mixed = batch;
    std::vector<Rng> rngs;
    for (uint64_t i = 0; i < kSamples; ++i) rngs.emplace_back(5, b, i);
    transform->apply(mixed, rngs);
    partners.clear();
    for (int64_t i = 0; i < kSamples; ++i) {
      const auto value = mixed.at("image")[i][0][0][0].item<double>();
      const auto label = mixed.at("label")[i][0][0][0].item<double>();
      int found = 0;
      for (int64_t j = 0; j < kSamples; ++j) {
        if (j == i) continue;
        const double weight = (value - static_cast<double>(j)) / static_cast<double>(i - j);
        const double expected = weight * std::exp2(i) + (1 - weight) * std::exp2(j);
        if (weight < 0 || weight > 1 || std::abs(label - expected) > 1e-3) continue;
        ++found;
        partners.insert(j);
        sum += weight;
        squares += weight * weight;
      }
      EXPECT_GE(found, 1);
    }
    EXPECT_GE(partners.size(), static_cast<std::size_t>(kSamples - 1));  // all but chance hits
  }
  const double n = kBatches * kSamples, mean = sum / n;  // Beta(1, 1) is uniform
  EXPECT_NEAR(mean, 0.5, 0.03);
  EXPECT_NEAR(squares / n - mean * mean, 1.0 / 12, 0.01);
}

TEST(CutMixd, CutsOneBoxOutOfAllKeys) {
  const auto transform = make_in_braces<data::BatchTransform>(
      "_target_: CutMixd, keys: image, label_keys: label, batch_size: 7");
  data::Batch batch = batch_of(kPlane);
  const at::Tensor number = at::arange(kSamples, at::kFloat).reshape({-1, 1, 1, 1});
  batch.tensors["image"] = number.expand({kSamples, 2, 13, 11});
  batch.tensors["label"] = (number + 100).expand({kSamples, 1, 13, 11});
  std::set<int64_t> sizes;
  for (uint64_t b = 0; b < 50; ++b) {
    data::Batch mixed = batch;
    std::vector<Rng> rngs;
    for (uint64_t i = 0; i < kSamples; ++i) rngs.emplace_back(5, b, i);
    transform->apply(mixed, rngs);
    EXPECT_TRUE((mixed.at("image").narrow(1, 0, 1) + 100).equal(mixed.at("label")))
        << "other boxes";
    for (int64_t i = 0; i < kSamples; ++i) {
      const at::Tensor image = mixed.at("image")[i][0];
      const at::Tensor inside = image.ne(static_cast<double>(i)).nonzero();
      if (inside.size(0) == 0) continue;  // sides below a voxel
      const at::Tensor extent = inside.amax(0) - inside.amin(0) + 1;
      EXPECT_EQ(inside.size(0), extent.prod().item<int64_t>()) << "a box";
      EXPECT_EQ(std::get<0>(at::_unique(image)).numel(), inside.size(0) == 143 ? 1 : 2);
      sizes.insert(inside.size(0));
    }
  }
  EXPECT_GT(sizes.size(), 20U);
}

TEST(CutOutd, ClearsOneBoxInEachImage) {
  const auto transform = make_in_braces<data::BatchTransform>("_target_: CutOutd, keys: image");
  data::Batch batch = batch_of(kPlane);
  std::set<int64_t> sizes;
  for (uint64_t b = 0; b < 20; ++b) {
    batch.tensors["image"] = at::ones({kSamples, 2, 13, 11});
    std::vector<Rng> rngs;
    for (uint64_t i = 0; i < kSamples; ++i) rngs.emplace_back(5, b, i);
    transform->apply(batch, rngs);
    for (const at::Tensor& image : batch.at("image").unbind(0)) {
      EXPECT_TRUE(image[0].equal(image[1]));
      const at::Tensor cleared = image[0].eq(0).nonzero();
      if (cleared.size(0) == 0) continue;  // sides below a voxel
      EXPECT_EQ(cleared.size(0), (cleared.amax(0) - cleared.amin(0) + 1).prod().item<int64_t>());
      sizes.insert(cleared.size(0));
    }
  }
  EXPECT_GT(sizes.size(), 10U);
}

TEST(BatchTransforms, SayWhatIsWrong) {
  EXPECT_THROW(
      make_in_braces<data::BatchTransform>("_target_: RandAffined, keys: image, spatial_size: 8"),
      ConfigError);
  std::vector<Rng> rngs = streams({0, 1, 2, 3, 4, 5, 6});
  data::Batch batch = batch_of(kPlane);
  EXPECT_THROW(make_in_braces<data::BatchTransform>("_target_: RandFlipd, keys: imag, prob: 1")
                   ->apply(batch, rngs),
               DataError);
  EXPECT_THROW(make_in_braces<data::BatchTransform>(
                   "_target_: RandRotate90d, keys: image, prob: 1, max_k: 1")
                   ->apply(batch, rngs),
               DataError);
  EXPECT_NO_THROW(make_in_braces<data::BatchTransform>(
                      "_target_: RandFlipd, keys: imag, prob: 1, allow_missing_keys: true")
                      ->apply(batch, rngs));
}

}  // namespace
}  // namespace cytra
