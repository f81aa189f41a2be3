// Writes a PNG of the labels over the image.
#include <optional>

#include <ATen/ATen.h>

#include "base/own_files.h"
#include "inference/outputs/output.h"
#include "inference/outputs/overlay_rows.h"
#include "inference/outputs/result.h"

namespace cytra::inference {
namespace {

class OverlayOutput final : public ResultOutput {
 public:
  explicit OverlayOutput(const OutputPlace& place) : path_(place.stem + "_overlay.png") {
    expect_replaceable(path_);
  }
  /// Takes the next rows; a result without labels gets no overlay.
  void take(const ImageResult& result, const at::Tensor& rows) override {
    if (!result.has_labels()) return;
    if (!overlay_) overlay_.emplace(result.image());
    overlay_->take(result.labels(rows));
  }
  void finish(ResultFiles& files) override {
    if (!overlay_) return;
    io::write_png(path_, overlay_->picture());
    files.emplace_back("overlay", path_);
  }

 private:
  const std::string path_;
  std::optional<OverlayRows> overlay_;
};

const bool overlay_is_added = add_result_output<OverlayOutput>("overlay", "overlay");

}  // namespace
}  // namespace cytra::inference
