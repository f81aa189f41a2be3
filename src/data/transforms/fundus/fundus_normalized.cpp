// FundusNormalized: photographs of retinas with their disc at a fixed place and size.
#include <algorithm>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "config/registry.h"
#include "data/transforms/fundus/view.h"
#include "data/transforms/spatial_options.h"
#include "data/transforms/voxel_frame.h"

namespace cytra::data::fundus {
namespace {

/// Brings the disc, which is searched in the first key, to its place. The geometries follow, so
/// that `predict.original_grid` can undo it.
class FundusNormalized final : public Transform {
 public:
  struct Options : spatial::KeyOptions, DiscOptions {
    View view;
    std::string contrast = "replace";
    bool mask = true;
    double white = 255;
    std::vector<std::string> mode{"bilinear"};
    template <class V>
    void visit(V& v) {
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
  };
  explicit FundusNormalized(const Options& options) : options_(options) {}

  void apply(Sample& sample, Rng&) const override {
    Disc disc;
    std::vector<int64_t> shape;
    options_.move_each(sample, [&](const at::Tensor& image, std::size_t k, auto& geometry) {
      if (image.dim() != 3)
        throw DataError("a stack, expected a plane: a retina is looked for in 2D images");
      const std::vector<int64_t> size = image.sizes().slice(1).vec();
      if (shape.empty()) {
        disc = find_discs(image.unsqueeze(0), options_)[0];
        if (!disc.is_found()) throw DataError(disc.problem());
        shape = size;
      }
      if (size != shape) {
        throw DataError(fmt::format(
            "{} pixels, the first key has {}", fmt::join(size, "x"), fmt::join(shape, "x")));
      }
      spatial::move_voxels(geometry, matrix_of(disc, options_.view));
      const bool is_label = spatial::of_key(options_.mode, k) == "nearest";
      return is_label ? to_view(image.unsqueeze(0), {disc}, options_.view, true)[0]
                      : seen(image, disc);
    });
  }

 private:
  at::Tensor seen(const at::Tensor& image, const Disc& disc) const {
    at::Tensor view = to_view(image.unsqueeze(0), {disc}, options_.view, false);
    const at::Tensor mask = mask_of({disc}, options_.view, view.device());
    const at::Tensor shown = options_.mask ? view * mask : view;
    if (options_.contrast == "none") return shown[0];
    const double white = options_.white, most = image.to(at::kFloat).max().item<double>();
    if (most > white || (most <= 1 && white > 1)) {
      throw DataError(fmt::format(
          "values up to {:g}, expected up to white: {:g}; set white to the value that is white",
          most,
          white));
    }
    const at::Tensor enhanced = enhance(view / white, mask, options_.view);
    return options_.contrast == "replace" ? enhanced[0] : at::cat({shown / white, enhanced}, 1)[0];
  }
  Options options_;
};
CYTRA_REGISTER(Transform, FundusNormalized, "FundusNormalized");

}  // namespace

}  // namespace cytra::data::fundus
