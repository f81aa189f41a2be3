#include "io/objects/geojson.h"

#include <cmath>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/files.h"

namespace cytra::io {
namespace {

using Text = nlohmann::json;

/// Writes a text as JSON; names come from files, in any encoding.
std::string json_text(const std::string& text) {
  return Text(text).dump(-1, ' ', false, Text::error_handler_t::replace);
}

void append_ring(const Ring& ring, std::string& out) {
  out += '[';
  for (const auto& [x, y] : ring) fmt::format_to(std::back_inserter(out), "[{},{}],", x, y);
  fmt::format_to(std::back_inserter(out), "[{},{}]]", ring[0][0], ring[0][1]);
}

void append_rings(const Polygon& polygon, std::string& out) {
  out += '[';
  append_ring(polygon.outer, out);
  for (const Ring& hole : polygon.holes) {
    out += ',';
    append_ring(hole, out);
  }
  out += ']';
}

void append_properties(int64_t label, const GeoJsonOptions& options, std::string& out) {
  ObjectProperties properties;
  if (options.describe) properties = options.describe(label);
  if (properties.name.empty()) properties.name = std::to_string(label);
  fmt::format_to(std::back_inserter(out),
                 R"({{"objectType":"{}","name":{})",
                 options.is_annotation ? "annotation" : "detection",
                 json_text(properties.name));
  if (!properties.class_name.empty()) {
    const auto& [red, green, blue] = properties.colour;
    fmt::format_to(std::back_inserter(out),
                   R"(,"classification":{{"name":{},"color":[{},{},{}]}})",
                   json_text(properties.class_name),
                   red,
                   green,
                   blue);
  }
  const char* separator = ",\"measurements\":{";
  for (const auto& [name, value] : properties.measurements) {
    if (!std::isfinite(value)) continue;
    fmt::format_to(std::back_inserter(out), "{}{}:{}", separator, json_text(name), value);
    separator = ",";
  }
  out += *separator == ',' && separator[1] == '\0' ? "}}" : "}";
}

}  // namespace

std::vector<std::vector<const Polygon*>> group_by_object(const std::vector<Polygon>& polygons) {
  std::vector<std::vector<const Polygon*>> objects;
  std::map<std::pair<int64_t, int64_t>, std::size_t> known;
  for (const Polygon& polygon : polygons) {
    const auto [found, is_new] = known.try_emplace({polygon.z, polygon.label}, objects.size());
    if (is_new) objects.emplace_back();
    objects[found->second].push_back(&polygon);
  }
  return objects;
}

void write_geojson(const std::string& path,
                   const std::vector<Polygon>& polygons,
                   const GeoJsonOptions& options) {
  constexpr std::size_t kFlush = std::size_t{1} << 20;
  AtomicFile file(path);
  std::string out = R"({"type":"FeatureCollection","features":[)";
  const char* separator = "\n";
  for (const std::vector<const Polygon*>& object : group_by_object(polygons)) {
    const bool is_one = object.size() == 1;
    fmt::format_to(std::back_inserter(out),
                   R"({}{{"type":"Feature","geometry":{{"type":"{}","coordinates":{})",
                   separator,
                   is_one ? "Polygon" : "MultiPolygon",
                   is_one ? "" : "[");
    for (std::size_t i = 0; i < object.size(); ++i) {
      if (i > 0) out += ',';
      append_rings(*object[i], out);
    }
    if (!is_one) out += ']';
    if (options.is_stack)
      fmt::format_to(std::back_inserter(out), R"(,"plane":{{"c":-1,"z":{},"t":0}})", object[0]->z);
    out += R"(},"properties":)";
    append_properties(object[0]->label, options, out);
    out += '}';
    separator = ",\n";
    if (out.size() < kFlush) continue;
    file.write(out);
    out.clear();
  }
  file.write(out + "\n]}\n");
  file.commit();
}

}  // namespace cytra::io
