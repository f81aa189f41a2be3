#pragma once
// Outlines for QuPath. Source: RFC 7946; QuPath's PathObjectTypeAdapters and its documentation
// "Exporting annotations".
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "io/objects/polygons.h"

namespace cytra::io {

/// The known properties of an object.
struct ObjectProperties {
  std::string name, class_name;           // "": none
  std::array<unsigned char, 3> colour{};  // of the class
  std::vector<std::pair<std::string, double>>
      measurements;  // those that are not finite are left out
};
struct GeoJsonOptions {
  bool is_annotation = false;  // else detections: QuPath draws many of them faster
  bool is_stack = false;       // polygons lie in planes
  std::function<ObjectProperties(int64_t label)> describe;  // may be empty
};
/// Writes a FeatureCollection with an object for each label of a plane: a Polygon, or a
/// MultiPolygon of its parts. Coordinates are pixels. Atomic. Throws: as AtomicFile.
void write_geojson(const std::string& path,
                   const std::vector<Polygon>& polygons,
                   const GeoJsonOptions& options = {});

/// Groups polygons by label and plane, in the order of the first of each group, for writers of
/// objects.
std::vector<std::vector<const Polygon*>> group_by_object(const std::vector<Polygon>& polygons);

}  // namespace cytra::io
