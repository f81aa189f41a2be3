// GridPatchd: the patches of a grid over the image, each a sample of its own. Source:
// monai.transforms.GridPatchd, which stacks them instead.
#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>

#include "config/registry.h"
#include "data/sample/pad_crop.h"
#include "data/sample/spatial_options.h"
#include "data/sample/voxel_frame.h"

namespace cytra::data::spatial {
namespace {

struct GridPatchd : KeyOptions {
  std::vector<int64_t> patch_size, offset;
  int64_t num_samples = 0;
  double overlap = 0, value = 0;
  std::optional<std::string> sort_fn, pad_mode;
  void visit(auto& v) {
    KeyOptions::visit(v);
    v("patch_size",
      patch_size,
      "voxels per spatial dimension; <= 0: the image's size",
      config::required);
    v("num_patches",
      num_samples,
      "samples per image: the first of the grid; one beyond its end is filled with value",
      config::required);
    v("offset", offset, "voxels ahead of the first patch, per spatial dimension; default: 0");
    v("overlap", overlap, "overlap of neighbours, as a share of the patch", 0, 0.99);
    v("sort_fn", sort_fn, "min, max: by the sum of the first key's patch; null: by place");
    v("pad_mode",
      pad_mode,
      "how the image goes on for patches that cross its end: constant, edge, reflect, symmetric "
      "or wrap; null: none does");
    v("value", value, "what pad_mode constant fills in");
    v("constant_values", value, "numpy's name for value");
    v("threshold", config::Unused{{"null"}}, "every image has as many patches");
  }
  void check() const {
    if (num_samples < 1) throw ConfigError("num_patches: expected at least 1");
    if (!pad_mode && !offset.empty() && *std::ranges::min_element(offset) < 0)
      throw ConfigError("offset: below 0, where the image ends: expected a pad_mode");
    if (sort_fn) check_choices("sort_fn", {*sort_fn}, {"min", "max"});
    if (pad_mode) check_choices("pad_mode", {*pad_mode}, kPadModes);
  }

  /// True, although it draws nothing, as it is applied again for each draw.
  void operator()(Sample& sample, Rng&) const {
    const std::vector<int64_t> image = first_size(sample);
    if (image.empty()) return;
    const std::vector<int64_t> size = size_or("patch_size", patch_size, image);
    std::vector<std::vector<int64_t>> starts = starts_of(image, size);
    if (starts.empty())
      throw DataError("{}: GridPatchd: {} voxels, too few for a patch of {}",
                      sample.id,
                      fmt::join(image, "x"),
                      fmt::join(size, "x"));
    if (sort_fn) sort(sample, size, starts);
    const auto patch = static_cast<std::size_t>(sample.draw % num_samples);
    const bool is_beyond = patch >= starts.size();
    const std::vector<int64_t>& start = starts[is_beyond ? 0 : patch];
    move_each(sample, [&](const at::Tensor& whole, std::size_t, auto& geometry) {
      move_voxels(geometry, {}, {start.begin(), start.end()});
      const at::Tensor cut = patch_of(whole, start, size);
      return is_beyond ? at::full_like(cut, value) : cut;
    });
  }

 private:
  /// The starts of the patches, in the order of the image's memory.
  std::vector<std::vector<int64_t>> starts_of(const std::vector<int64_t>& image,
                                              const std::vector<int64_t>& size) const {
    std::vector<std::vector<int64_t>> starts{{}};
    for (std::size_t d = 0; d < image.size(); ++d) {
      const bool is_whole = patch_size[patch_size.size() == 1 ? 0 : d] <= 0;
      const double step = static_cast<double>(size[d]) * (1 - (is_whole ? 0 : overlap));
      const int64_t end = pad_mode && !is_whole ? image[d] : image[d] - size[d] + 1;
      const int64_t first = offset.empty() ? 0 : per_dim("offset", offset, image.size())[d];
      std::vector<std::vector<int64_t>> longer;
      for (const std::vector<int64_t>& start : starts) {
        for (int64_t i = first; i < end; i += std::max<int64_t>(std::llrint(step), 1)) {
          longer.push_back(start);
          longer.back().push_back(i);
        }
      }
      starts = std::move(longer);
    }
    return starts;
  }

  at::Tensor patch_of(const at::Tensor& image,
                      const std::vector<int64_t>& start,
                      const std::vector<int64_t>& size) const {
    PadWidths widths;
    std::vector<int64_t> inside;
    for (std::size_t d = 0; d < start.size(); ++d) {
      const int64_t n = image.size(static_cast<int64_t>(d) + 1);
      widths.emplace_back(std::max<int64_t>(-start[d], 0),
                          std::max<int64_t>(start[d] + size[d] - n, 0));
      inside.push_back(std::max<int64_t>(start[d], 0));
    }
    return crop(pad(image, widths, pad_mode.value_or("constant"), value), inside, size);
  }

  void sort(Sample& sample,
            const std::vector<int64_t>& size,
            std::vector<std::vector<int64_t>>& starts) const {
    const auto key = std::ranges::find_if(keys, [&](const auto& k) { return !skips(sample, k); });
    const at::Tensor image = sample.at(*key);
    const double sign = *sort_fn == "max" ? -1 : 1;
    std::vector<std::pair<double, std::vector<int64_t>>> sorted;
    for (const std::vector<int64_t>& start : starts)
      sorted.emplace_back(sign * patch_of(image, start, size).sum().item<double>(), start);
    std::ranges::stable_sort(sorted,
                             [](const auto& a, const auto& b) { return a.first < b.first; });
    for (std::size_t i = 0; i < starts.size(); ++i) starts[i] = sorted[i].second;
  }
};
CYTRA_REGISTER(Transform, PerSample<GridPatchd>, "GridPatchd");

}  // namespace
}  // namespace cytra::data::spatial
