// Spacingd by splines and onto the world's axes, ResampleToMatchd: against MONAI's values
// (tests/golden/make_resampling.py).
#include <cstring>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "base/error.h"
#include "io/image.h"
#include "tests/data/make_transform.h"
#include "tests/data/monai_affine.h"
#include "tests/support/golden.h"
#include "tests/support/message_of.h"
#include "tests/support/tmp_dir.h"

namespace cytra {
namespace {

io::Geometry geometry_of(const std::string& affine, std::size_t dims) {
  io::Geometry geometry;
  geometry.affine = of_xyz(affine, dims);
  geometry.spacing_um = spacing_of(geometry.affine);
  return geometry;
}

void write_tensor(const std::string& path, const at::Tensor& tensor, const io::Geometry& geometry) {
  const at::Tensor values = tensor.contiguous();
  io::Image image;
  image.dtype = io::Dtype::f32;
  image.shape[0] = values.size(0);
  for (int64_t d = 1; d < values.dim(); ++d)
    image.shape[static_cast<std::size_t>(4 - values.dim() + d)] = values.size(d);
  image.pixels.resize(image.bytes());
  std::memcpy(image.pixels.data(), values.const_data_ptr<float>(), image.bytes());
  image.geometry = geometry;
  io::write_nifti(path, image);
}

TEST(Resampling, EqualsMonai) {
  const test::Golden golden("resampling");
  const test::TmpDir dir;
  for (const test::GoldenCase& entry : golden.cases(42)) {
    SCOPED_TRACE(entry.name);
    const auto name = entry.node.get<std::string>("transform");
    const at::Tensor image = entry.tensor("image");
    const auto dims = static_cast<std::size_t>(image.dim() - 1);
    data::Sample sample;
    sample.id = entry.name;
    sample.image = "target";  // nothing is turned ahead of the transform
    sample.geometries["image"] = geometry_of(entry.node.get<std::string>("affine"), dims);
    Rng rng(0);
    if (entry.has("target")) {
      write_tensor(dir / "image.nii", image, sample.geometries["image"]);
      write_tensor(dir / "target.nii",
                   entry.tensor("target"),
                   geometry_of(entry.node.get<std::string>("affine_target"), dims));
      for (const char* key : {"image", "target"})
        sample.sources[key].path = dir / (std::string(key) + ".nii");
      make_transform(
          fmt::format("{{_target_: LoadImaged, keys: [image, target], spatial_dims: {}}}", dims))
          ->apply(sample, rng);
    } else {
      sample.tensors["image"] = image;
    }
    make<data::Transform>(test::component("monai.transforms." + name, entry.options()))
        ->apply(sample, rng);
    EXPECT_EQ(sample.at("image").scalar_type(), at::kFloat);
    EXPECT_LT(test::relative_difference(sample.at("image"), entry.tensor("image.out")), 1e-5);
    const auto expected = of_xyz(entry.node.get<std::string>("affine_out"), dims);
    for (std::size_t i = 0; i < 12; ++i)
      EXPECT_NEAR(sample.geometries["image"].affine[i], expected[i], 1e-5) << "affine " << i;
  }
}

TEST(ResampleToMatchd, SaysWhatIsMissing) {
  const test::TmpDir dir;
  io::Geometry geometry;
  geometry.spacing_um = {1, 0.5, 0.5};
  const std::string step = "{_target_: ResampleToMatchd, keys: image, key_dst: target}";
  data::Sample loaded;
  loaded.id = "a";
  for (const char* key : {"image", "target"}) {
    loaded.sources[key].path = dir / (std::string(key) + ".nii");
    write_tensor(loaded.sources[key].path, at::ones({1, 6, 8}), geometry);
  }
  Rng rng(0);
  make_transform("{_target_: LoadImaged, keys: [image, target]}")->apply(loaded, rng);
  const auto message = [&](data::Sample sample) {
    return message_of<DataError>([&] { make_transform(step)->apply(sample, rng); });
  };
  EXPECT_EQ(message(loaded), "");
  data::Sample sample = loaded;
  sample.geometries.erase("target");
  EXPECT_NE(message(sample).find("the distance between its voxels is not known"), std::string::npos)
      << message(sample);
  EXPECT_THROW(make_transform("{_target_: ResampleToMatchd, keys: image, key_dst: b, mode: 6}"),
               ConfigError);
}

}  // namespace
}  // namespace cytra
