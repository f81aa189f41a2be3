// NAME_rois.zip: outlines for ImageJ's ROI Manager.
#include "io/objects/imagej_roi.h"

#include <optional>

#include <ATen/ATen.h>

#include "base/own_files.h"
#include "inference/outputs/objects.h"
#include "inference/outputs/output.h"
#include "inference/outputs/result.h"

namespace cytra::inference {
namespace {

class ImageJRoiOutput final : public ResultOutput {
 public:
  explicit ImageJRoiOutput(const OutputPlace& place) : path_(place.stem + "_rois.zip") {
    expect_replaceable(path_);
  }
  bool takes_objects() const override { return true; }
  bool takes_object_rows() const override { return true; }
  void take(const ImageResult& result, const at::Tensor& rows) override {
    if (result.is_whole()) return;
    if (!outlines_) outlines_.emplace();
    outlines_->add(rows[0]);
    is_stack_ = rows.dim() == 4;
    channels_ = result.image_channels();
  }
  void take(const ImageResult& result, const ResultObjects& objects) override {
    is_stack_ = objects.labels().dim() == 3;
    channels_ = result.image_channels();
    const std::vector<io::Polygon>& own = objects.outlines();
    polygons_.insert(polygons_.end(), own.begin(), own.end());
  }
  void finish(ResultFiles& files) override {
    if (outlines_) polygons_ = outlines_->finish();
    if (polygons_.empty()) return;  // Fiji does not accept an archive without entries
    io::write_imagej_rois(path_, polygons_, is_stack_, channels_);
    files.emplace_back("rois", path_);
  }

 private:
  const std::string path_;
  std::vector<io::Polygon> polygons_;
  std::optional<ObjectOutlines> outlines_;  // where objects come as rows
  int64_t channels_ = 1;
  bool is_stack_ = false;
};

const bool imagej_roi_output_is_added =
    add_result_output<ImageJRoiOutput>("contours", "imagej_roi");

}  // namespace
}  // namespace cytra::inference
