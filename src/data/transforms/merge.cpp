// Merged: joins two images of the same place, the base where a mask is set and the other one
// elsewhere. Source: cyto_dl.image.transforms.Merged.
#include "data/sample/per_key.h"

namespace cytra::data {
namespace {

struct Merged {
  std::vector<std::string> image_keys;
  std::string mask_key, base_image_key, output_name;
  void visit(auto& v) {
    v("mask_key",
      mask_key,
      "mask, 1 where the base image is taken; none: all of the base image",
      config::required);
    v("image_keys", image_keys, "the two images", config::required);
    v("base_image_key",
      base_image_key,
      "which of them is the base: its key, or a column of the manifest that names it",
      config::required);
    v("output_name", output_name, "key of the result", config::required);
  }
  void check() const {
    if (image_keys.size() != 2) throw ConfigError("image_keys: expected two keys");
  }

  void operator()(Sample& sample) const {
    const std::string base_key = name_of_base(sample);
    const at::Tensor base = sample.at(base_key);
    at::Tensor result = base;
    if (sample.has(mask_key)) {
      const at::Tensor mask = sample.at(mask_key);
      const at::Tensor& other = sample.at(image_keys[base_key == image_keys[0]]);
      for (const at::Tensor& image : {mask, other}) {
        if (image.sizes().slice(1) != base.sizes().slice(1)) {
          throw DataError(sample.id + ": '" + mask_key + "' and " +
                          "the images to merge differ in size, expected one");
        }
      }
      result = at::where(mask.ne(0), base, other);
    }
    sample.tensors[output_name] = result;
    sample.geometries[output_name] = io::Geometry(sample.geometries[base_key]);
  }

 private:
  std::string name_of_base(const Sample& sample) const {
    std::string name = base_image_key;
    const auto column = sample.columns.find(name);
    if (column != sample.columns.end()) name = column->second;
    if (name != image_keys[0] && name != image_keys[1]) {
      throw DataError(sample.id + ": '" + name + "' is the base image, expected '" + image_keys[0] +
                      "' or '" + image_keys[1] + "'");
    }
    return name;
  }
};
CYTRA_REGISTER(Transform, PerSample<Merged>, "Merged");

}  // namespace
}  // namespace cytra::data
