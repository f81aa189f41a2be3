// Grayscaled: red, green and blue as one channel. Source: Pillow's mode L (the luma of ITU-R
// 601-2).
#include "data/sample/per_key.h"

namespace cytra::data {
namespace {

struct Grayscaled : KeyOptions {
  void visit(auto& v) { KeyOptions::visit(v); }
  static constexpr bool kIsPointwise = true;
  static constexpr bool kTakesColours = true;
  at::Tensor operator()(const at::Tensor& image) const {
    const int64_t channels = image.size(0);
    if (channels == 1) return image;
    if (channels != 3 && channels != 4)
      throw DataError(
          std::to_string(channels) +
          " channels, expected one, or red, green and blue (and alpha): choose one by a "
          "table's column `channel`");
    return (image[0] * 0.299 + image[1] * 0.587 + image[2] * 0.114).unsqueeze(0);
  }
};
CYTRA_REGISTER(Transform, PerKey<Grayscaled>, "Grayscaled");

}  // namespace
}  // namespace cytra::data
