#pragma once
// A detector without a model: what is brighter than a threshold, a box for each connected part.
#include <algorithm>
#include <string>
#include <vector>

#include <ATen/ATen.h>

#include "ops/boxes/label_boxes.h"
#include "ops/labels/components.h"
#include "pipelines/detection/detector.h"
#include "tests/pipelines/found.h"

namespace cytra::pipelines {

class FakeDetector final : public Detector {
 public:
  explicit FakeDetector(double threshold = 0, int64_t in_channels = 1)
      : threshold_(threshold), in_channels_(in_channels) {}

  /// The score of a part is its share of the image, so that the largest one comes first.
  std::vector<ops::Boxes> detect(const std::vector<at::Tensor>& images) override {
    ++calls;
    std::vector<ops::Boxes> all;
    for (const at::Tensor& image : images) {
      const ops::Components parts = ops::connected_components(
          image.select(0, 0).to(at::kFloat).gt(threshold_).to(at::kInt), 2);
      std::vector<Found> found;
      const at::Tensor volume = parts.labels.contiguous().unsqueeze(0);
      for (const auto& [label, box] : ops::boxes_of<int32_t>(volume)) {
        const auto size = static_cast<float>(parts.sizes[static_cast<std::size_t>(label)]);
        found.push_back({static_cast<float>(box.first[2]),
                         static_cast<float>(box.first[1]),
                         static_cast<float>(box.last[2] + 1),
                         static_cast<float>(box.last[1] + 1),
                         size / static_cast<float>(image.numel()),
                         0});
      }
      std::stable_sort(found.begin(), found.end(), [](const Found& a, const Found& b) {
        return a.score > b.score;
      });
      all.push_back(boxes_of(found));
    }
    return all;
  }
  int64_t full_windows() const override { return 0; }
  int64_t in_channels() const override { return in_channels_; }
  std::string fingerprint() const override { return "fake " + std::to_string(threshold_); }

  int64_t calls = 0;

 private:
  double threshold_;
  int64_t in_channels_;
};

}  // namespace cytra::pipelines
