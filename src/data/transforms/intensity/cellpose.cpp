// CellposePreprocessingd: what Cellpose does to an image before its network: three channels, each
// between its own percentiles. Source: cellpose 4.2, transforms.py: convert_image, normalize_img,
// normalize99; of images above 224^3 values it takes percentiles of some, here of all.
#include <algorithm>

#include "base/warn_once.h"
#include "data/sample/per_key.h"
#include "data/transforms/intensity/percentile.h"

namespace cytra::data {
namespace {

const std::vector<double> kEnds{1, 99};  // percentiles that become 0 and 1
constexpr int64_t kChannels = 3;
constexpr float kLeastRange = 1e-3F;  // between them; a channel with less becomes 0

struct CellposePreprocessingd : KeyOptions {
  void visit(auto& v) { KeyOptions::visit(v); }
  static constexpr bool kTakesColours = true;
  at::Tensor operator()(const at::Tensor& image) const {
    std::vector<std::vector<float>> ends;
    for (const at::Tensor& channel : image.slice(0, 0, kChannels).unbind(0)) {
      ends.emplace_back();
      for (const double q : kEnds) ends.back().push_back(percentile(channel, q));
    }
    return changed(image, ends);
  }
  RowChange by_rows(const Scan& scan) const {
    return [ends = percentiles(scan, /*channel_wise=*/true, kEnds)](const at::Tensor& rows) {
      return changed(rows, ends);
    };
  }

 private:
  /// What comes behind the third channel is left out, and missing ones are 0.
  static at::Tensor changed(const at::Tensor& image, const std::vector<std::vector<float>>& ends) {
    if (image.size(0) > kChannels)
      warn_once("CellposePreprocessingd: the first 3 of " + std::to_string(image.size(0)) +
                " channels are taken, as by Cellpose; a table's column `channel` chooses others");
    std::vector<at::Tensor> channels;
    for (int64_t c = 0; c < std::min(image.size(0), kChannels); ++c) {
      const float low = ends[static_cast<std::size_t>(c)][0];
      const float range = ends[static_cast<std::size_t>(c)][1] - low;
      if (range > 0 && range <= kLeastRange)
        warn_once(
            "CellposePreprocessingd: a channel whose values lie within 0.001 counts as empty, as "
            "in Cellpose; multiply its values");
      channels.push_back(range > kLeastRange ? (image[c] - low) / range : at::zeros_like(image[c]));
    }
    while (std::ssize(channels) < kChannels) channels.push_back(at::zeros_like(channels[0]));
    return at::stack(channels);
  }
};
CYTRA_REGISTER(Transform, PerKey<CellposePreprocessingd>, "CellposePreprocessingd");

}  // namespace
}  // namespace cytra::data
