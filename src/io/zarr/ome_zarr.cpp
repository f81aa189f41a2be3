#include "io/zarr/ome_zarr.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "io/pixels/format.h"

namespace cytra::io {
namespace {

constexpr std::size_t kMostWells = 10'000, kMostScenes = 100'000, kMostLevels = 100;

const Json& list_at(const Json& json, const char* key, const std::string& place, std::size_t most) {
  const Json& list = member(json, key, place);
  if (!list.is_array() || list.empty() || list.size() > most)
    refuse_zarr(
        place, fmt::format("'{}' is {}", key, excerpt(list)), fmt::format("1 to {} of them", most));
  return list;
}

struct Axis {
  std::string name, type, unit;
};

std::vector<Axis> parse_axes(const Json& list, const std::string& place) {
  if (!list.is_array() || list.size() < 2 || list.size() > 5)
    refuse_zarr(place, "'axes' is " + excerpt(list), "2 to 5 axes");
  std::vector<Axis> axes;
  for (const Json& entry : list) {
    Axis axis;
    if (entry.is_string()) {  // 0.3
      axis.name = entry.get<std::string>();
    } else {
      axis.name = text_of(entry, "name", place);
      if (entry.contains("type") && entry["type"].is_string())
        axis.type = text_of(entry, "type", place);
      if (entry.contains("unit") && entry["unit"].is_string())
        axis.unit = text_of(entry, "unit", place);
    }
    axes.push_back(axis);
  }
  return axes;
}

/// Places axes by type; spatial axes with other names than z, y, x are placed by position.
Axes place_axes(const std::vector<Axis>& list, const std::string& place) {
  Axes axes;
  std::vector<int> spatial;
  bool is_named = true;
  for (int i = 0; i < static_cast<int>(list.size()); ++i) {
    const Axis& axis = list[static_cast<std::size_t>(i)];
    const std::string& name = axis.name;
    if (axis.type == "space" || (axis.type != "time" && axis.type != "channel" &&
                                 (name == "z" || name == "y" || name == "x"))) {
      spatial.push_back(i);
      is_named = is_named && (name == "z" || name == "y" || name == "x");
    } else {
      int& into = axis.type == "time" || (axis.type != "channel" && name == "t") ? axes.t : axes.c;
      if (into >= 0)
        refuse_zarr(place, "two axes like " + excerpt(name), "t, c, z, y and x at most");
      into = i;
    }
  }
  if (spatial.size() < 2 || spatial.size() > 3)
    refuse_zarr(place, fmt::format("{} axes of space", spatial.size()), "y and x, or z, y and x");
  if (spatial.size() == 3) axes.z = spatial[0];
  axes.y = spatial[spatial.size() - 2];
  axes.x = spatial.back();
  if (!is_named) return axes;
  axes.z = axes.y = axes.x = -1;
  for (const int i : spatial) {
    const std::string& name = list[static_cast<std::size_t>(i)].name;
    int& into = name == "z" ? axes.z : name == "y" ? axes.y : axes.x;
    if (into >= 0) refuse_zarr(place, "two axes '" + name + "'", "t, c, z, y and x at most");
    into = i;
  }
  if (axes.y < 0 || axes.x < 0) refuse_zarr(place, "no axes 'y' and 'x'", "an image with both");
  return axes;
}

/// The place of a level along each axis of the array: voxel i lies at scale * i + translation.
struct LevelPlace {
  std::vector<double> scale, translation;
  bool is_translated = false;  // the metadata state a translation
};

/// Applies those of "coordinateTransformations", if any, after what `level` has. Other kinds than
/// scale, translation and identity make the scale unknown (0).
void apply_transformations(const Json& json, const std::string& place, LevelPlace& level) {
  const auto found = json.find("coordinateTransformations");
  if (found == json.end() || found->is_null()) return;
  if (!found->is_array() || found->size() > 100)
    refuse_zarr(place, "'coordinateTransformations' is " + excerpt(*found), "a list");
  for (const Json& transformation : *found) {
    const std::string type = text_of(transformation, "type", place);
    if (type == "identity") continue;
    const bool is_scale = type == "scale";
    if ((!is_scale && type != "translation") || !transformation.contains(type)) {
      std::ranges::fill(level.scale, 0);
      return;
    }
    const Json& list = transformation[type];
    if (!list.is_array() || list.size() != level.scale.size())
      refuse_zarr(place,
                  fmt::format("'{}' is {}", type, excerpt(list)),
                  fmt::format("{} numbers", level.scale.size()));
    for (std::size_t i = 0; i < level.scale.size(); ++i) {
      if (!list[i].is_number())
        refuse_zarr(place, fmt::format("'{}' is {}", type, excerpt(list)), "numbers");
      const auto number = list[i].get<double>();
      if (is_scale) level.scale[i] *= number;
      level.translation[i] =
          is_scale ? level.translation[i] * number : level.translation[i] + number;
    }
    level.is_translated = level.is_translated || !is_scale;
  }
}

std::string plain_path(const Json& json, const std::string& place) {
  std::string path = text_of(json, "path", place);
  while (!path.empty() && path.back() == '/') path.pop_back();
  return path;
}

}  // namespace

ZarrNode find_zarr_node(ZarrStore& store, const std::string& key) {
  ZarrNode node;
  node.key = key;
  const auto below = [&](const char* name) { return key.empty() ? name : key + "/" + name; };
  node.json = store.read_json(below("zarr.json"));
  if (!node.json.is_null()) {
    node.format = 3;
    node.place = node.attributes_place = store.path_of(below("zarr.json"));
    const std::string type = text_of(node.json, "node_type", node.place);
    if (node.json.value("zarr_format", Json()) != 3 || (type != "array" && type != "group"))
      refuse_zarr(
          node.place, "not an array or group of Zarr 3", "both 'zarr_format' and 'node_type'");
    node.is_array = type == "array";
    const Json attributes = node.json.value("attributes", Json::object());
    node.attributes = attributes.is_object() ? attributes.value("ome", attributes) : Json::object();
    return node;
  }
  node.place = store.path_of(below(".zarray"));
  node.attributes_place = store.path_of(below(".zattrs"));
  node.json = store.read_json(below(".zarray"));
  node.is_array = !node.json.is_null();
  if (!node.is_array) node.attributes = store.read_json(below(".zattrs"));
  if (node.is_array || !node.attributes.is_null() || store.has(below(".zgroup"))) node.format = 2;
  if (!node.attributes.is_object()) node.attributes = Json::object();
  return node;
}

ZarrMeta parse_zarr_array(const ZarrStore& store, const ZarrNode& node) {
  if (node.format == 0)
    refuse_zarr(store.path_of(node.key), "not a Zarr array", "zarr.json or .zarray in this folder");
  if (!node.is_array) refuse_zarr(store.path_of(node.key), "a group", "an array");
  return node.format == 3 ? parse_zarr_v3(node.json, node.place)
                          : parse_zarr_v2(node.json, node.place);
}

Axes axes_by_position(std::size_t rank, const std::string& place) {
  if (rank < 2 || rank > 5)
    refuse_zarr(place, fmt::format("{} dimensions", rank), "2 to 5: YX, ZYX, CZYX or TCZYX");
  const int n = static_cast<int>(rank);
  return {n - 5, std::max(n - 4, -1), std::max(n - 3, -1), n - 2, n - 1};
}

Axes axes_by_name(const std::vector<std::string>& names) {
  Axes axes;
  for (int i = 0; i < static_cast<int>(names.size()); ++i) {
    const std::string& name = names[static_cast<std::size_t>(i)];
    int* into = name == "t"   ? &axes.t
                : name == "c" ? &axes.c
                : name == "z" ? &axes.z
                : name == "y" ? &axes.y
                : name == "x" ? &axes.x
                              : nullptr;
    if (into == nullptr || *into >= 0) return {};
    *into = i;
  }
  return axes;
}

OmeImage parse_ome_image(const ZarrStore& store, const ZarrNode& group) {
  const std::string& place = group.attributes_place;
  const Json& image = list_at(group.attributes, "multiscales", place, 1000)[0];
  const Json& datasets = list_at(image, "datasets", place, kMostLevels);
  OmeImage result;
  std::vector<Axis> axes;
  if (image.contains("axes")) {
    axes = parse_axes(image["axes"], place);
    result.axes = place_axes(axes, place);
    result.rank = axes.size();
  }
  LevelPlace first;  // of level 0: smaller ones state a translation in images that have no place
  for (const Json& dataset : datasets) {
    OmeImage::Level level;
    level.path = store.join(group.key, plain_path(dataset, place));
    LevelPlace at{std::vector<double>(axes.size(), 1), std::vector<double>(axes.size()), false};
    apply_transformations(dataset, place, at);
    apply_transformations(image, place, at);
    if (result.levels.empty()) first = at;
    std::vector<double> steps, origin;  // of x, y, z in um; 0: unknown
    for (const int axis : {result.axes.x, result.axes.y, result.axes.z}) {
      if (axis < 0) continue;
      const auto k = static_cast<std::size_t>(axis);
      const double factor = !axes[k].unit.empty() ? micrometres(axes[k].unit)
                            : first.scale[k] == 1 ? 0
                                                  : 1;
      steps.push_back(at.scale[k] * factor);
      origin.push_back(at.translation[k] * factor);
    }
    level.geometry = axis_aligned_geometry(steps, first.is_translated ? &origin : nullptr);
    result.levels.push_back(std::move(level));
  }
  const auto omero = group.attributes.find("omero");
  if (omero == group.attributes.end() || !omero->is_object()) return result;
  const Json channels = omero->value("channels", Json());
  if (!channels.is_array()) return result;
  for (const Json& channel : channels) {
    const Json label = channel.is_object() ? channel.value("label", Json()) : Json();
    result.channel_names.push_back(label.is_string() ? label.get<std::string>() : "");
  }
  return result;
}

std::vector<std::string> find_ome_scenes(ZarrStore& store, const ZarrNode& group) {
  const Json& attributes = group.attributes;
  std::vector<std::string> scenes;
  const auto add_well = [&](const ZarrNode& node) {
    const std::string& place = node.attributes_place;
    const Json& well = member(node.attributes, "well", place);
    for (const Json& image : list_at(well, "images", place, kMostScenes)) {
      scenes.push_back(store.join(node.key, plain_path(image, place)));
      if (scenes.size() > kMostScenes)
        refuse_zarr(place, "more images than that", fmt::format("at most {}", kMostScenes));
    }
  };
  if (attributes.contains("multiscales")) {
    scenes.push_back(group.key);
  } else if (attributes.contains("plate")) {
    const Json& wells = list_at(attributes["plate"], "wells", group.attributes_place, kMostWells);
    for (const Json& well : wells) {
      const std::string key = store.join(group.key, plain_path(well, group.attributes_place));
      const ZarrNode node = find_zarr_node(store, key);
      if (node.format != 0) add_well(node);  // a plate may lack wells that were not imaged
    }
    if (scenes.empty())
      refuse_zarr(group.attributes_place, "none of its wells is there", "at least one");
  } else if (attributes.contains("well")) {
    add_well(group);
  } else if (attributes.contains("bioformats2raw.layout")) {
    const std::string ome = store.join(group.key, "OME");
    const ZarrNode node = find_zarr_node(store, ome);
    if (node.attributes.is_object() && node.attributes.contains("series")) {
      const Json& series = list_at(node.attributes, "series", node.attributes_place, kMostScenes);
      for (const Json& name : series) {
        if (!name.is_string())
          refuse_zarr(node.attributes_place, "'series' is " + excerpt(series), "names");
        scenes.push_back(store.join(group.key, name.get<std::string>()));
      }
    } else {
      while (scenes.size() < kMostScenes) {
        const std::string key = store.join(group.key, std::to_string(scenes.size()));
        if (!store.has(key + "/zarr.json") && !store.has(key + "/.zgroup")) break;
        scenes.push_back(key);
      }
    }
    if (scenes.empty()) refuse_zarr(group.attributes_place, "no series is there", "0, 1, ...");
  }
  return scenes;
}

}  // namespace cytra::io
