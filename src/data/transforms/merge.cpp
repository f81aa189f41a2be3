// Merged: joins two images of the same place, the base where a mask is set and the other one
// elsewhere. Source: cyto_dl.image.transforms.Merged.
#include "data/transforms/per_key.h"

namespace cytra::data {
namespace {

class Merged final : public Transform {
 public:
  struct Options {
    std::vector<std::string> image_keys;
    std::string mask_key, base_image_key, output_name;
    template <class V>
    void visit(V& v) {
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
  };
  explicit Merged(const Options& options) : options_(options) {}

  void apply(Sample& sample, Rng&) const override {
    const std::string base_key = name_of_base(sample);
    const at::Tensor base = sample.at(base_key);
    at::Tensor result = base;
    if (sample.has(options_.mask_key)) {
      const at::Tensor mask = sample.at(options_.mask_key);
      const at::Tensor& other = sample.at(options_.image_keys[base_key == options_.image_keys[0]]);
      for (const at::Tensor& image : {mask, other}) {
        if (image.sizes().slice(1) != base.sizes().slice(1)) {
          throw DataError(sample.id + ": '" + options_.mask_key + "' and " +
                          "the images to merge differ in size, expected one");
        }
      }
      result = at::where(mask.ne(0), base, other);
    }
    sample.tensors[options_.output_name] = result;
    sample.geometries[options_.output_name] = io::Geometry(sample.geometries[base_key]);
  }

 private:
  std::string name_of_base(const Sample& sample) const {
    std::string name = options_.base_image_key;
    const auto column = sample.columns.find(name);
    if (column != sample.columns.end()) name = column->second;
    if (name != options_.image_keys[0] && name != options_.image_keys[1]) {
      throw DataError(sample.id + ": '" + name + "' is the base image, expected '" +
                      options_.image_keys[0] + "' or '" + options_.image_keys[1] + "'");
    }
    return name;
  }
  Options options_;
};
CYTRA_REGISTER(Transform, Merged, "Merged");

}  // namespace
}  // namespace cytra::data
