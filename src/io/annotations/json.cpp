// Part of io/annotations/formats.h: JSON, which is QuPath's GeoJSON (RFC 7946;
// qupath.lib.io.PathObjectTypeAdapters), COCO (cocodataset.org/#format-data) and labelme. Lists
// are read element by element: a file of many images is never in memory as a whole tree.

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/strings.h"
#include "io/annotations/formats.h"
#include "io/annotations/json_parts.h"

namespace cytra::io {
namespace {

constexpr int kDeepestJson = 32;

class AnnotationJson {
 public:
  explicit AnnotationJson(const std::string& path)
      : path_(path), geojson_(path), coco_(path), labelme_(path) {}

  AnnotationFile read(const std::string& bytes) {
    Json root;
    try {
      root = Json::parse(bytes, [this](int depth, Json::parse_event_t event, Json& value) {
        return take(depth, event, value);
      });
    } catch (const Json::exception& error) {
      std::string what = error.what();  // "[json.exception.parse_error.101] parse error at line 1"
      what.erase(0, what.find("] ") + 2);
      throw DataError(path_ + ": not JSON, expected annotations: " + printable(what, 200));
    }
    if (coco_.is_begun()) return coco_.finish();
    if (has_shapes_) return labelme_.finish(root);
    if (root.is_object() && !has_features_) has_features_ = geojson_.add_root(root);
    if (has_features_ || (root.is_array() && is_list_)) return geojson_.finish();
    throw DataError(path_ +
                    ": not annotations of a known kind, expected GeoJSON (features), COCO (images, "
                    "annotations, categories) or labelme (shapes)");
  }

 private:
  /// Takes a value; false for values that are finished and can be dropped.
  bool take(int depth, Json::parse_event_t event, Json& value) {
    using Event = Json::parse_event_t;
    if (depth > kDeepestJson)
      throw DataError("{}: lists in lists, expected at most {}", path_, kDeepestJson);
    const bool is_end =
        event == Event::object_end || event == Event::array_end || event == Event::value;
    if (depth == 0) is_list_ = is_list_ || event == Event::array_start;
    if (is_list_) {
      if (depth != 1 || !is_end) return true;
      geojson_.add(value);
      return false;
    }
    if (depth == 1 && event == Event::key) key_ = value.get<std::string>();
    if (depth == 1 && event == Event::array_start) {
      if (key_ == "images" || key_ == "annotations" || key_ == "categories") coco_.begin(key_);
      has_features_ = has_features_ || key_ == "features";
      has_shapes_ = has_shapes_ || key_ == "shapes";
    }
    if (depth == 1 && event == Event::value && key_ == "imageData") return false;
    if (depth != 2 || !is_end) return true;
    if (key_ == "features") {
      geojson_.add(value);
    } else if (key_ == "shapes") {
      labelme_.add(value);
    } else if (!coco_.add(key_, value)) {
      return true;
    }
    return false;
  }

  const std::string& path_;
  GeoJsonParts geojson_;
  CocoParts coco_;
  LabelmeParts labelme_;
  std::string key_;
  bool is_list_ = false, has_features_ = false, has_shapes_ = false;
};

}  // namespace

AnnotationFile parse_annotation_json(const std::string& path, const std::string& bytes) {
  return AnnotationJson(path).read(bytes);
}

}  // namespace cytra::io
