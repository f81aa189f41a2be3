#include "io/zarr/ome_zarr_write.h"

#include <filesystem>
#include <limits>

#include "io/pixels/format.h"

namespace cytra::io {

const char* const kAxisNames[4] = {"c", "z", "y", "x"};

std::vector<std::size_t> written_axes(const ImageInfo& info) {
  std::vector<std::size_t> axes;
  if (info.shape[0] > 1 || !info.channel_names.empty()) axes.push_back(0);
  if (info.shape[1] > 1 || info.geometry.spacing_um[0] > 0) axes.push_back(1);
  axes.push_back(2);
  axes.push_back(3);
  return axes;
}

std::string image_name(const std::string& path) {
  std::string name = std::filesystem::path(path).filename().string();
  for (const char* extension : {".zarr", ".ome"}) {
    const std::size_t at = name.rfind(extension);
    if (at != std::string::npos && at > 0 && at + std::string(extension).size() == name.size())
      name.resize(at);
  }
  return name;
}

Json group_json(const Json& ome) {
  return {{"zarr_format", 3}, {"node_type", "group"}, {"attributes", {{"ome", ome}}}};
}

namespace {

Json omero_json(const ImageInfo& info, const Ranges& ranges) {
  constexpr const char* kColors[] = {
      "FFFFFF", "00FF00", "FF00FF", "00FFFF", "FFFF00", "FF0000", "0000FF"};
  Json channels = Json::array();
  for (std::size_t c = 0; c < info.channel_names.size(); ++c) {
    const auto [low, high] = ranges[c];
    std::pair<double, double> whole{low, high};
    with_type(info.dtype, [&](auto value) {
      using Limits = std::numeric_limits<decltype(value)>;
      if constexpr (Limits::is_integer) whole = {Limits::lowest(), Limits::max()};
    });
    const std::size_t color = info.channel_names.size() == 1 ? 0 : 1 + c % 6;
    channels.push_back(
        {{"label", info.channel_names[c]},
         {"color", kColors[color]},
         {"active", true},
         {"window", {{"start", low}, {"end", high}, {"min", whole.first}, {"max", whole.second}}}});
  }
  return {{"channels", channels}};
}

}  // namespace

Json ome_attributes(const std::string& name,
                    const ImageInfo& info,
                    const std::vector<PyramidLevel>& levels,
                    const Ranges& ranges,
                    bool is_nearest,
                    bool is_label,
                    bool is_v0_5) {
  const std::vector<std::size_t> written = written_axes(info);
  Json axes = Json::array();
  if (info.timepoints > 1) axes.push_back({{"name", "t"}, {"type", "time"}});
  for (const std::size_t axis : written) {
    Json entry = {{"name", kAxisNames[axis]}, {"type", axis == 0 ? "channel" : "space"}};
    if (axis > 0 && info.geometry.spacing_um[axis - 1] > 0) entry["unit"] = "micrometer";
    axes.push_back(entry);
  }
  const auto origin = axis_aligned_origin_um(info.geometry);
  Json datasets = Json::array();
  for (std::size_t i = 0; i < levels.size(); ++i) {
    Json scale = Json::array(), translation = Json::array();
    if (info.timepoints > 1) {
      scale.push_back(1.0);
      translation.push_back(0.0);
    }
    for (const std::size_t axis : written) {
      const double spacing = axis > 0 ? info.geometry.spacing_um[axis - 1] : 0;
      const double factor = axis > 0 ? static_cast<double>(levels[i].factor[axis - 1]) : 1;
      const double step = spacing > 0 ? spacing : 1;
      scale.push_back(step * factor);
      // A level's first voxel lies at the centre of a block.
      translation.push_back((origin && spacing > 0 ? (*origin)[3 - axis] : 0) +
                            step * (factor - 1) / 2);
    }
    Json transformations = {{{"type", "scale"}, {"scale", scale}}};
    if (i > 0 || origin)
      transformations.push_back({{"type", "translation"}, {"translation", translation}});
    datasets.push_back(
        {{"path", std::to_string(i)}, {"coordinateTransformations", transformations}});
  }
  Json image = {{"name", name},
                {"axes", axes},
                {"datasets", datasets},
                {"type", is_nearest ? "nearest" : "mean"}};
  Json ome = {{"multiscales", Json::array({image})}};
  if (is_label) ome["image-label"] = {{"source", {{"image", "../../"}}}};
  if (is_v0_5) {
    ome["version"] = "0.5";
  } else {
    ome["multiscales"][0]["version"] = "0.4";
    if (is_label) ome["image-label"]["version"] = "0.4";
  }
  if (!info.channel_names.empty() && !is_label) ome["omero"] = omero_json(info, ranges);
  return ome;
}

}  // namespace cytra::io
