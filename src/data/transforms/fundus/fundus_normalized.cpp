// FundusNormalized: photographs of retinas with their disc at a fixed place and size.

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "config/registry.h"
#include "data/sample/spatial_options.h"
#include "data/sample/voxel_frame.h"
#include "data/transforms/fundus/view.h"

namespace cytra::data::fundus {
namespace {

/// Brings the disc, which is searched in the first key, to its place. The geometries follow, so
/// that `predict.original_grid` can undo it.
struct FundusNormalized : spatial::KeyOptions, DiscOptions {
  View view;
  std::string contrast = "replace";
  bool mask = true;
  double white = 255;
  std::vector<std::string> mode{"bilinear"};
  void visit(auto& v) {
    spatial::KeyOptions::visit(v);
    v("size", view.size, "pixels of a side of the result", 16, 16384);
    v("fill", view.fill, "diameter of the disc as a share of that", 0.1, 2);
    v("contrast",
      contrast,
      "4 (x - blur(x)) + 0.5 of keys with mode bilinear: instead of x (replace), behind its "
      "channels (append), or not (none)",
      {"replace", "append", "none"});
    v("mask", mask, "0 outside of the disc, of keys with mode bilinear");
    v("white",
      white,
      "the largest value there can be, which contrast makes 1: 65535 of 16 bit, 1 of shares",
      1e-9,
      1e9);
    v("mode", mode, "bilinear, or nearest for labels; one, or one per key");
    DiscOptions::visit(v);
  }
  void check() const {
    spatial::check_choices("mode", mode, {"bilinear", "nearest"});
    spatial::check_per_key("mode", mode, *this);
  }

  void operator()(Sample& sample) const {
    Disc disc;
    std::vector<int64_t> shape;
    move_each(sample, [&](const at::Tensor& image, std::size_t k, auto& geometry) {
      if (image.dim() != 3)
        throw DataError("a stack, expected a plane: a retina is looked for in 2D images");
      const std::vector<int64_t> size = image.sizes().slice(1).vec();
      if (shape.empty()) {
        disc = find_discs(image.unsqueeze(0), *this)[0];
        if (!disc.is_found()) throw DataError(disc.problem());
        shape = size;
      }
      if (size != shape) {
        throw DataError(
            "{} pixels, the first key has {}", fmt::join(size, "x"), fmt::join(shape, "x"));
      }
      spatial::move_voxels(geometry, matrix_of(disc, view));
      const bool is_label = spatial::of_key(mode, k) == "nearest";
      return is_label ? to_view(image.unsqueeze(0), {disc}, view, true)[0] : seen(image, disc);
    });
  }

 private:
  at::Tensor seen(const at::Tensor& image, const Disc& disc) const {
    const at::Tensor square = to_view(image.unsqueeze(0), {disc}, view, false);
    const at::Tensor inside = mask_of({disc}, view, square.device());
    const at::Tensor shown = mask ? square * inside : square;
    if (contrast == "none") return shown[0];
    const double most = image.to(at::kFloat).max().item<double>();
    if (most > white || (most <= 1 && white > 1)) {
      throw DataError(
          "values up to {:g}, expected up to white: {:g}; set white to the value that is white",
          most,
          white);
    }
    const at::Tensor enhanced = enhance(square / white, inside, view);
    return contrast == "replace" ? enhanced[0] : at::cat({shown / white, enhanced}, 1)[0];
  }
};
CYTRA_REGISTER(Transform, PerSample<FundusNormalized>, "FundusNormalized");

}  // namespace

}  // namespace cytra::data::fundus
