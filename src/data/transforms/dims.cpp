// SplitDimd, SqueezeDimd, RepeatChanneld: dimensions of images. Source:
// monai.transforms.{SplitDimd, SqueezeDimd, RepeatChanneld}.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "data/sample/per_key.h"
#include "data/sample/voxel_frame.h"

namespace cytra::data {
namespace {

/// The dimension `dim` of an image, counted from its end when negative.
int64_t dim_of(const at::Tensor& image, int64_t dim) {
  if (dim >= image.dim() || dim < -image.dim())
    throw DataError("{} dimensions, expected one numbered {}", image.dim(), dim);
  return dim < 0 ? dim + image.dim() : dim;
}

at::Tensor without(const at::Tensor& image, int64_t dim) {
  if (image.size(dim) != 1) {
    throw DataError(
        "{} along dim {} of {}, expected 1", image.size(dim), dim, fmt::join(image.sizes(), "x"));
  }
  if (image.dim() <= 3) {
    throw DataError("{} without dim {} is no image, expected (C,Y,X) to remain",
                    fmt::join(image.sizes(), "x"),
                    dim);
  }
  return image.squeeze(dim);
}

struct SplitDimd : KeyOptions {
  std::vector<std::string> output_postfixes;
  int64_t dim = 0;
  bool keepdim = true, list_output = false;
  void visit(auto& v) {
    KeyOptions::visit(v);
    v("output_postfixes", output_postfixes, "parts are KEY_POSTFIX; null: KEY_0, KEY_1, ...");
    v("dim", dim, "to split; 0: channels", -4, 3);
    v("keepdim", keepdim, "parts keep the dimension, of size 1");
    v("list_output", list_output, "must be false: a sample stays one sample");
    v("update_meta", config::Unused{}, "each image keeps its own geometry");
  }
  void check() const {
    if (list_output) throw ConfigError("list_output: true, expected false: use its parts' keys");
  }

  void operator()(Sample& sample) const {
    for (const std::string& key : keys) {
      if (skips(sample, key)) continue;
      const at::Tensor image = sample.at(key);
      const std::vector<at::Tensor> parts = split(sample, key);
      for (std::size_t i = 0; i < parts.size(); ++i) {
        const std::vector<std::string>& names = output_postfixes;
        const std::string name = key + "_" + (names.empty() ? std::to_string(i) : names[i]);
        if (sample.has(name) || !sample.tensors.emplace(name, parts[i]).second)
          throw DataError(sample.id + ": '" + name + "' is there, expected a new name for a part");
        place(sample, key, name, image.dim(), static_cast<double>(i));
      }
    }
  }

 private:
  /// Sets the place of part `i` of a split image.
  void place(Sample& sample,
             const std::string& key,
             const std::string& name,
             int64_t dims,
             double i) const {
    const auto whole = sample.geometries.find(key);
    if (whole == sample.geometries.end()) return;
    const int64_t axis = (dim < 0 ? dim + dims : dim) - 1;
    if (axis > 0 && !keepdim) return;  // a plane of other axes
    io::Geometry part = whole->second;
    std::vector<double> shift(static_cast<std::size_t>(dims - 1));
    if (axis >= 0) shift[static_cast<std::size_t>(axis)] = i;
    spatial::move_voxels(part, {}, shift);
    sample.geometries[name] = part;
  }
  std::vector<at::Tensor> split(Sample& sample, const std::string& key) const {
    std::vector<at::Tensor> parts;
    KeyOptions one;
    one.keys = {key};
    one.for_each(sample, [&](const at::Tensor& image) {
      const int64_t axis = dim_of(image, dim);
      const std::size_t names = output_postfixes.size();
      parts = image.split(1, axis);
      if (names > 0 && names != parts.size()) {
        throw DataError(
            "{} along dim {}, expected {} as output_postfixes", parts.size(), axis, names);
      }
      for (at::Tensor& part : parts) part = keepdim ? part : without(part, axis);
      return image;
    });
    return parts;
  }
};
CYTRA_REGISTER(Transform, PerSample<SplitDimd>, "SplitDimd");

struct SqueezeDimd : KeyOptions {
  std::optional<int64_t> dim = 0;
  void visit(auto& v) {
    KeyOptions::visit(v);
    v("dim", dim, "of size 1, to leave out; null: all of size 1", -4, 3);
    v("update_meta", config::Unused{}, "each image keeps its own geometry");
  }
  at::Tensor operator()(const at::Tensor& image) const {
    if (dim) return without(image, dim_of(image, *dim));
    at::Tensor result = image;
    for (int64_t d = image.dim() - 1; d >= 0; --d) {
      if (image.size(d) == 1) result = without(result, d);
    }
    return result;
  }
};
CYTRA_REGISTER(Transform, PerKey<SqueezeDimd>, "SqueezeDimd");

struct RepeatChanneld : KeyOptions {
  int64_t repeats = 1;
  void visit(auto& v) {
    KeyOptions::visit(v);
    v("repeats", repeats, "times each channel comes, one after the other", config::required);
  }
  void check() const {
    if (repeats < 1) throw ConfigError("repeats: expected at least 1");
  }
  at::Tensor operator()(const at::Tensor& image) const {
    return image.repeat_interleave(repeats, 0);
  }
};
CYTRA_REGISTER(Transform, PerKey<RepeatChanneld>, "RepeatChanneld");

}  // namespace
}  // namespace cytra::data
