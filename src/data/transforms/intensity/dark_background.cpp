// DarkBackgroundd: the negative of an image whose background is bright, as of stained tissue and of
// inverted fluorescence, so that objects are bright in all. Cellpose has the option `invert` for
// it.
#include "data/sample/per_key.h"
#include "data/transforms/intensity/percentile.h"

namespace cytra::data {
namespace {

/// What most of an image's values are near to, and its ends: percentiles 1, 50 and 99.
const std::vector<double> kPercentiles{1, 50, 99};

struct DarkBackgroundd : KeyOptions {
  void visit(auto& v) { KeyOptions::visit(v); }
  at::Tensor operator()(const at::Tensor& image) const {
    std::vector<float> found;
    for (const double q : kPercentiles) found.push_back(percentile(image, q));
    return changed(image, found);
  }
  RowChange by_rows(const Scan& scan) const {
    return [found = percentiles(scan, /*channel_wise=*/false, kPercentiles)](
               const at::Tensor& rows) { return changed(rows, found.at(0)); };
  }

 private:
  static at::Tensor changed(const at::Tensor& image, const std::vector<float>& found) {
    const float low = found[0], median = found[1], high = found[2];
    return median - low > high - median ? low + high - image : image;
  }
};
CYTRA_REGISTER(Transform, PerKey<DarkBackgroundd>, "DarkBackgroundd");

}  // namespace
}  // namespace cytra::data
