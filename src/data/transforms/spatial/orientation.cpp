// Orientationd: turns and mirrors a volume so that its axes have the wanted directions. Source:
// monai.transforms.Orientationd.
#include <algorithm>

#include <ATen/ATen.h>

#include "config/registry.h"
#include "data/sample/spatial_options.h"
#include "data/sample/turn.h"
#include "data/sample/voxel_frame.h"

namespace cytra::data::spatial {
namespace {

struct Orientationd : KeyOptions {
  static constexpr bool kIsBounded = true;
  std::string axcodes;
  bool as_closest_canonical = false;
  void visit(auto& v) {
    KeyOptions::visit(v);
    v("axcodes",
      axcodes,
      "where x, y and z (in this order, as nibabel names a file's axes) go: of L or R, P or A, I "
      "or S, e.g. RAS");
    v("as_closest_canonical", as_closest_canonical, "RAS, whatever axcodes says");
    v("labels", config::Unused{{"null"}}, "the letters are L R P A I S");
  }
  void check() {
    if (as_closest_canonical) axcodes = "RAS";
    std::string pairs;
    for (const char code : axcodes)
      pairs += code == 'R' || code == 'L' ? 'r' : code == 'A' || code == 'P' ? 'a' : code;
    for (char& code : pairs) code = code == 'I' || code == 'S' ? 's' : code;
    std::ranges::sort(pairs);
    if (pairs != "ars")
      throw ConfigError("axcodes: expected one of L, R, one of P, A and one of I, S, such as RAS");
  }

  void operator()(Sample& sample) const {
    move_each(sample, [&](const at::Tensor& image, std::size_t, io::Geometry& geometry) {
      if (image.dim() != 4)
        throw DataError("{} spatial dimensions, Orientationd is for volumes", image.dim() - 1);
      if (!geometry.has_affine())
        throw DataError(
            "Orientationd needs to know where the axes go, which the file does not say");
      const Turn turn = turn_of(world_axes(geometry));
      move_voxels(geometry, matrix_of(turn, image.sizes().slice(1)));
      return turned(image, turn, sample.folder);
    });
  }

 private:
  Turn turn_of(const std::vector<std::pair<int64_t, bool>>& axes) const {
    Turn turn = mirror("Orientationd", {}, 3);
    for (std::size_t d = 0; d < 3; ++d) {
      const char code = axcodes[2 - d];  // of (z,y,x)
      const int64_t world = code == 'R' || code == 'L' ? 0 : code == 'A' || code == 'P' ? 1 : 2;
      const bool against = code == 'L' || code == 'P' || code == 'I';
      std::size_t source = 0;
      while (axes[source].first != world) ++source;
      turn.from[d] = static_cast<int64_t>(source);
      turn.mirrored[d] = axes[source].second != against;
    }
    return turn;
  }
};
CYTRA_REGISTER(Transform, PerSample<Orientationd>, "Orientationd");

}  // namespace
}  // namespace cytra::data::spatial
