// EnsureChannelFirstd: LoadImaged already puts the channels first, so this checks the keys and
// changes nothing. Source: monai.transforms.EnsureChannelFirstd.
#include <ATen/ATen.h>

#include "config/registry.h"
#include "data/sample/spatial_options.h"

namespace cytra::data::spatial {
namespace {

class EnsureChannelFirstd final : public Transform {
 public:
  struct Options : KeyOptions {
    template <class V>
    void visit(V& v) {
      KeyOptions::visit(v);
      v("channel_dim", config::Unused{{"0", "no_channel"}}, "images have their channels first");
      v("strict_check", config::Unused{}, "an image without a channel dimension is an error");
    }
  };
  explicit EnsureChannelFirstd(const Options& options) : options_(options) {}

  void apply(Sample& sample, Rng&) const override {
    options_.for_each(sample, [](const at::Tensor& image, std::size_t, io::Geometry&) {
      if (image.dim() == 3 || image.dim() == 4) return image;
      throw DataError(fmt::format("{} dimensions, expected (C,Y,X) or (C,Z,Y,X)", image.dim()));
    });
  }
  RowChange by_rows(const std::string&, const Scan&) const override {
    return [](const at::Tensor& rows) { return rows; };
  }

 private:
  Options options_;
};
CYTRA_REGISTER(Transform, EnsureChannelFirstd, "EnsureChannelFirstd");

}  // namespace
}  // namespace cytra::data::spatial
