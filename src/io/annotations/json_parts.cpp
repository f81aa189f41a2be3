#include "io/annotations/json_parts.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error.h"
#include "base/strings.h"
#include "io/annotations/shapes.h"

namespace cytra::io {
namespace {

Ring geojson_ring(const JsonPlace& place, const Json& corners) {
  if (!corners.is_array()) place.refuse("coordinates without corners, expected a list of [x, y]");
  Ring ring;
  for (const Json& corner : corners) {
    if (!corner.is_array() || corner.size() < 2)
      place.refuse("a corner that is not a pair of numbers, expected [x, y]");
    ring.push_back({place.number(corner[0], "x"), place.number(corner[1], "y")});
  }
  return ring;
}

std::vector<Ring> geojson_rings(const JsonPlace& place, const Json& rings) {
  if (!rings.is_array()) place.refuse("coordinates without rings, expected lists of [x, y]");
  return mapped(rings, [&](const Json& ring) { return geojson_ring(place, ring); });
}

/// The class by QuPath: {name: "Tumor"}, {names: [Tumor, Positive]}, or a text.
std::string classification_of(const JsonPlace& place, const Json& properties) {
  const Json* own = place.find(properties, "classification");
  if (own == nullptr) return "";
  if (own->is_string()) return own->get<std::string>();
  if (const std::string name = place.text_of(*own, "name"); !name.empty()) return name;
  const Json* names = place.find(*own, "names");
  std::string joined;
  if (names != nullptr && names->is_array()) {
    for (const Json& name : *names)
      if (name.is_string()) joined += (joined.empty() ? "" : ": ") + name.get<std::string>();
  }
  return joined;
}

}  // namespace

std::string JsonPlace::text() const {
  return fmt::format("{}: {}[{}]", path, list, index);
}

void JsonPlace::refuse(const std::string& what) const {
  throw DataError(text() + ": " + what);
}

double JsonPlace::number(const Json& value, const char* what) const {
  if (value.is_number()) return coordinate(text() + ": " + what, value.get<double>());
  refuse(fmt::format("{} is {}, expected a number", what, value.type_name()));
}

const Json* JsonPlace::find(const Json& object, const char* key) const {
  if (!object.is_object()) refuse(fmt::format("{}, expected a map", object.type_name()));
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

std::string JsonPlace::text_of(const Json& object, const char* key) const {
  const Json* value = find(object, key);
  if (value == nullptr) return "";
  if (value->is_string()) return value->get<std::string>();
  if (value->is_number_integer()) return value->dump();
  refuse(fmt::format("{} is {}, expected text", key, value->type_name()));
}

bool GeoJsonParts::add_geometry(const JsonPlace& place,
                                const Json& geometry,
                                Annotation& object,
                                int depth) {
  const std::string type = place.text_of(geometry, "type");
  if (const Json* plane = place.find(geometry, "plane")) {
    const Json* z = place.find(*plane, "z");
    if (z != nullptr) object.plane = std::max<int64_t>(0, std::llround(place.number(*z, "z")));
  }
  if (type == "GeometryCollection" && depth < 4) {
    const Json* all = place.find(geometry, "geometries");
    if (all == nullptr || !all->is_array()) place.refuse("no geometries, expected a list");
    bool has_area = false;
    for (const Json& one : *all) has_area |= add_geometry(place, one, object, depth + 1);
    return has_area;
  }
  const Json* coordinates = place.find(geometry, "coordinates");
  if (type == "Polygon" || type == "MultiPolygon") {
    if (coordinates == nullptr || !coordinates->is_array())
      place.refuse(type + " without coordinates, expected a list of rings");
    if (type == "Polygon") {
      object.parts.push_back(geojson_rings(place, *coordinates));
    } else {
      for (const Json& part : *coordinates) object.parts.push_back(geojson_rings(place, part));
    }
    return true;
  }
  if (type == "Point" || type == "MultiPoint" || type == "LineString" || type == "MultiLineString")
    return false;
  place.refuse(fmt::format("a geometry of type '{}', expected Polygon or MultiPolygon",
                           printable(type, 40)));
}

void GeoJsonParts::add(const Json& feature) {
  const JsonPlace place{path_, "features", count_++};
  const Json* geometry = place.find(feature, "geometry");
  if (place.text_of(feature, "type") != "Feature") {
    place.refuse(
        "not a Feature, expected GeoJSON as QuPath exports it; a list of COCO's results does not "
        "say which images they belong to: name a COCO file with images, annotations and "
        "categories");
  }
  if (geometry == nullptr) return;
  Annotation object;
  object.plane = 0;  // QuPath omits the first
  if (!add_geometry(place, *geometry, object, 0)) {
    ++left_out_;
    return;
  }
  if (const Json* properties = place.find(feature, "properties")) {
    object.class_name = classification_of(place, *properties);
    object.name = place.text_of(*properties, "name");
  }
  object.box = box_around(object);
  objects_.push_back(std::move(object));
}

bool GeoJsonParts::add_root(const Json& root) {
  const JsonPlace place{path_, "features", 0};
  const std::string type =
      root.is_object() && root.contains("type") ? place.text_of(root, "type") : "";
  if (type == "Feature") {
    add(root);
  } else if (type == "Polygon" || type == "MultiPolygon" || type == "GeometryCollection") {
    add({{"type", "Feature"}, {"geometry", root}});
  } else {
    return false;
  }
  return true;
}

AnnotationFile GeoJsonParts::finish() {
  AnnotationFile file;
  file.without_area = left_out_;
  file.images.push_back({"", 0, 0, std::move(objects_)});
  return file;
}

void LabelmeParts::add(const Json& shape) {
  const JsonPlace place{path_, "shapes", count_++};
  std::string type = place.text_of(shape, "shape_type");
  if (type.empty()) type = "polygon";
  const bool has_area = type == "polygon" || type == "rectangle" || type == "circle";
  if (type == "mask")
    place.refuse(
        "shape_type mask, expected polygon, rectangle or circle; labelme's own export "
        "writes label images of such files");
  if (!has_area) {
    ++left_out_;
    return;
  }
  const Json* points = place.find(shape, "points");
  if (points == nullptr) place.refuse("no points, expected a list of corners");
  Ring ring = geojson_ring(place, *points);
  if (type != "polygon" && ring.size() != 2 && !(type == "rectangle" && ring.size() == 4))
    place.refuse(fmt::format("a {} of {} points, expected 2", type, ring.size()));
  Annotation object;
  object.class_name = place.text_of(shape, "label");
  if (type == "circle") {
    const double radius = std::hypot(ring[1][0] - ring[0][0], ring[1][1] - ring[0][1]);
    ring = ellipse(ring[0], {radius, 0}, {0, radius});
  } else if (type == "rectangle" && ring.size() == 2) {
    ring = rectangle({ring[0][0], ring[0][1], ring[1][0], ring[1][1]});
  }
  const std::string group = place.text_of(shape, "group_id");
  if (!group.empty()) {  // parts of one object
    const auto [found, is_new] = groups_.try_emplace({object.class_name, group}, objects_.size());
    if (!is_new) {
      Annotation& whole = objects_[found->second];
      whole.parts.push_back({std::move(ring)});
      whole.box = box_around(whole);
      return;
    }
  }
  object.parts.push_back({std::move(ring)});
  object.box = box_around(object);
  objects_.push_back(std::move(object));
}

AnnotationFile LabelmeParts::finish(const Json& root) {
  const JsonPlace place{path_, "shapes", 0};
  const auto side = [&](const char* key) {
    const Json* value = place.find(root, key);
    return value == nullptr ? 0 : std::llround(place.number(*value, key));
  };
  AnnotationFile file;
  file.without_area = left_out_;
  file.images.push_back({"", side("imageHeight"), side("imageWidth"), std::move(objects_)});
  return file;
}

}  // namespace cytra::io
