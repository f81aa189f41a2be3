// NAME.geojson: outlines for QuPath.
#include "io/objects/geojson.h"

#include <map>
#include <optional>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "base/own_files.h"
#include "inference/outputs/objects.h"
#include "inference/outputs/output.h"
#include "inference/outputs/result.h"
#include "io/objects/palette.h"

namespace cytra::inference {
namespace {

class GeoJsonOutput final : public ResultOutput {
 public:
  explicit GeoJsonOutput(OutputPlace place)
      : place_(std::move(place)), path_(place_.stem + ".geojson") {
    expect_replaceable(path_);
  }
  bool takes_objects() const override { return true; }
  bool takes_object_rows() const override { return true; }
  void take(const ImageResult& result, const at::Tensor& rows) override {
    if (result.is_whole()) return;
    if (!outlines_) outlines_.emplace();
    outlines_->add(rows[0]);
    options_.is_stack = rows.dim() == 4;
    numbered_ = result.classes();
  }
  void take(const ImageResult& result, const ResultObjects& objects) override {
    options_.is_stack = objects.labels().dim() == 3;
    has_classes_ = result.has_classes();
    for (const io::Polygon& one : objects.outlines()) {
      polygons_.push_back(one);
      classes_[one.label] = objects.class_of(one.label - objects.first());
    }
  }
  void finish(ResultFiles& files) override {
    if (outlines_) polygons_ = outlines_->finish();
    if (numbered_) {
      has_classes_ = true;
      for (const io::Polygon& one : polygons_)
        classes_[one.label] = numbered_->at(static_cast<std::size_t>(one.label));
    }
    if (has_classes_) {
      options_.describe = [this](int64_t label) {
        const int64_t kind = classes_.at(label);
        return io::ObjectProperties{
            "",
            place_.class_name ? place_.class_name(kind) : fmt::format("class_{}", kind),
            io::label_colour(kind),
            {}};
      };
    }
    io::write_geojson(path_, polygons_, options_);
    files.emplace_back("geojson", path_);
  }

 private:
  const OutputPlace place_;
  const std::string path_;
  std::vector<io::Polygon> polygons_;
  std::optional<ObjectOutlines> outlines_;  // where objects come as rows
  ObjectClasses numbered_;                  // their classes
  std::map<int64_t, int64_t> classes_;      // by label
  io::GeoJsonOptions options_;
  bool has_classes_ = false;
};

const bool geojson_output_is_added = add_result_output<GeoJsonOutput>("contours", "geojson");

}  // namespace
}  // namespace cytra::inference
