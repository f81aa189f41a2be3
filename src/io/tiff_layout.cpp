#include "io/tiff_layout.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/strings.h"

namespace cytra::io {

double micrometres(std::string unit) {
  // Micro sign, Greek mu, and what ImageJ writes for it.
  for (const char* micro : {"\xC2\xB5", "\xCE\xBC", "\xB5", "\\u00B5"}) {
    if (starts_with(unit, micro)) unit = "u" + unit.substr(std::string(micro).size());
  }
  static const std::map<std::string, double> kUnits = {{"um", 1},
                                                       {"micron", 1},
                                                       {"microns", 1},
                                                       {"micrometer", 1},
                                                       {"micrometre", 1},
                                                       {"nm", 1e-3},
                                                       {"mm", 1e3},
                                                       {"cm", 1e4},
                                                       {"m", 1e6},
                                                       {"pm", 1e-6},
                                                       {"\xC3\x85", 1e-4}};
  const auto found = kUnits.find(unit);
  return found == kUnits.end() ? 0 : found->second;
}

double spacing_of(double number, double unit) {
  const double spacing = number * unit;
  return std::isfinite(spacing) && spacing > 0 ? spacing : 0;
}

void check_scene(const std::string& path, int64_t scene, std::size_t scenes) {
  if (scene >= 0 && static_cast<std::size_t>(scene) < scenes) return;
  throw DataError(fmt::format("{}: no scene {}, expected 0{}",
                              path,
                              scene,
                              scenes > 1 ? fmt::format(" to {}", scenes - 1) : ""));
}

// Behind one directory a sparse file can hold any number of them.
constexpr int64_t kMostPlanes = 10'000'000;

void place(const std::string& path,
           const std::vector<TiffAxis>& axes,
           int64_t count,
           TiffLayout& layout) {
  // Of the axes of each name: the sizes, and in pages the steps
  constexpr char kNames[] = "TCZ";
  int64_t sizes[] = {1, 1, 1}, product = 1;
  for (const TiffAxis& axis : axes) {
    if (axis.size < 1)
      throw DataError(path + ": the description has an axis without extent, expected at least 1");
    if (axis.size > count || (product *= axis.size) > count) {
      throw DataError(
          fmt::format("{}: the description names more planes than the {} page{} that the file has, "
                      "expected one page for each; the file may be truncated, or be one of several "
                      "that belong together: save it as one OME-TIFF",
                      path,
                      count,
                      count == 1 ? "" : "s"));
    }
    sizes[std::string_view(kNames).find(axis.name)] *= axis.size;
  }
  if (product > kMostPlanes) {
    throw DataError(fmt::format(
        "{}: {} planes, expected at most {}; the file may be damaged", path, product, kMostPlanes));
  }
  layout.timepoints = sizes[0];
  layout.channels = sizes[1];
  layout.planes = sizes[2];
  layout.pages.assign(static_cast<std::size_t>(product), 0);
  for (int64_t page = 0; page < product; ++page) {
    int64_t rest = page, index[] = {0, 0, 0}, step[] = {1, 1, 1};
    for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
      const std::size_t i = std::string_view(kNames).find(axis->name);
      index[i] += rest % axis->size * step[i];
      step[i] *= axis->size;
      rest /= axis->size;
    }
    const int64_t at = (index[0] * sizes[1] + index[1]) * sizes[2] + index[2];
    layout.pages[static_cast<std::size_t>(at)] = static_cast<std::size_t>(page);
  }
}

int64_t whole_number(const std::string& path, const std::string& what, const std::string& text) {
  char* end = nullptr;
  const long long number = std::strtoll(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0' || number < 0 || number > INT32_MAX) {
    throw DataError(path + ": " + what + " is '" + printable(text, 40) +
                    "', expected a whole number");
  }
  return number;
}

namespace {

using Indices = std::vector<std::size_t>;

/// Takes a layout's pages 0, 1, ... to those at `indices`.
void map_to(const Indices& indices, TiffLayout& layout) {
  for (std::size_t& page : layout.pages) page = indices[page];
}

/// All pages but smaller copies; the first is one, whatever it says.
Indices full_pages(const std::vector<TiffPage>& pages) {
  Indices full = {0};
  for (std::size_t i = 1; i < pages.size(); ++i) {
    if (!pages[i].is_reduced) full.push_back(i);
  }
  return full;
}

/// Smaller copies that follow the layout's pages, one for each of them at each level.
void find_smaller(const std::vector<TiffPage>& pages, TiffLayout& layout) {
  std::vector<Indices> levels;
  bool is_ours = false;
  for (std::size_t i = 0; i < pages.size(); ++i) {
    if (i == 0 || !pages[i].is_reduced) {
      is_ours = std::binary_search(layout.pages.begin(), layout.pages.end(), i);
    } else if (is_ours && pages[i].like(pages[layout.pages[0]])) {
      const auto same = std::find_if(levels.begin(), levels.end(), [&](const Indices& level) {
        return pages[level[0]].same_as(pages[i]);
      });
      if (same != levels.end()) {
        same->push_back(i);
      } else if (levels.size() < 32) {
        levels.push_back({i});
      }
    }
  }
  for (Indices& level : levels) {
    const TiffPage& larger =
        pages[layout.smaller.empty() ? layout.pages[0] : layout.smaller.back()[0]];
    if (level.size() == layout.pages.size() && pages[level[0]].width < larger.width &&
        pages[level[0]].height <= larger.height)
      layout.smaller.push_back(std::move(level));
  }
}

/// Whether a file can hold so many planes without compression.
bool fits(const TiffPage& page, int64_t planes, std::size_t file_bytes) {
  return double{1} * page.width * page.height * page.samples * page.bits / 8 *
             static_cast<double>(planes) <=
         static_cast<double>(file_bytes);
}

TiffLayout imagej_layout(const std::string& path,
                         const std::vector<TiffPage>& all,
                         const Indices& pages,
                         std::size_t file_bytes) {
  std::map<std::string, std::string> fields;
  for (const std::string& line : split(all[0].description, '\n')) {
    const std::size_t equals = line.find('=');
    if (equals != std::string::npos) fields[line.substr(0, equals)] = trim(line.substr(equals + 1));
  }
  const auto size = [&](const char* name) {
    return fields.count(name) != 0
               ? whole_number(path, std::string("ImageJ's ") + name, fields[name])
               : 1;
  };
  const int64_t images = size("images"), channels = size("channels"), frames = size("frames");
  int64_t slices = size("slices");
  auto count = static_cast<int64_t>(pages.size());
  TiffLayout layout;
  // Above 4 GB ImageJ writes the directory of the first plane alone.
  layout.is_contiguous = images > 1 && count == 1 && fits(all[0], images, file_bytes);
  if (layout.is_contiguous) {
    count = images;
  } else if (images > count) {
    throw DataError(
        fmt::format("{}: an ImageJ stack of {} images in {} page{}, expected one page for each, or "
                    "one in front of the pixels of all; the file may be truncated",
                    path,
                    images,
                    count,
                    count == 1 ? "" : "s"));
  }
  if (channels == 1 && slices == 1 && frames == 1)
    slices = count;  // written without hyperstack fields
  place(path, {{'T', frames}, {'Z', slices}, {'C', channels}}, count, layout);
  if (!layout.is_contiguous) map_to(pages, layout);
  const double unit = micrometres(fields["unit"]);
  if (all[0].x_per_unit > 0 && all[0].y_per_unit > 0) {
    layout.geometry.spacing_um = {spacing_of(std::strtod(fields["spacing"].c_str(), nullptr), unit),
                                  spacing_of(1 / all[0].y_per_unit, unit),
                                  spacing_of(1 / all[0].x_per_unit, unit)};
  }
  return layout;
}

/// The axes of tifffile's {"shape": [...], "axes": "..."} in front of Y, X [, samples] or samples,
/// Y, X. False when it is not of this page.
bool shaped_axes(const TiffPage& page, std::vector<TiffAxis>& axes, bool& is_contiguous) {
  const nlohmann::json json = nlohmann::json::parse(page.description, nullptr, false);
  if (!json.is_object() || !json.contains("shape") || !json["shape"].is_array() ||
      json["shape"].size() > 16)
    return false;
  std::vector<int64_t> shape;
  for (const nlohmann::json& side : json["shape"]) {
    if (!side.is_number_unsigned() || side > INT32_MAX) return false;
    shape.push_back(side.get<int64_t>());
  }
  std::string names;
  if (json.contains("axes") && json["axes"].is_string()) names = json["axes"].get<std::string>();
  if (names.size() != shape.size()) names.assign(shape.size(), 'Q');
  is_contiguous = json.contains("truncated") && json["truncated"] == true;
  const auto drop = [&](std::size_t from_end, int64_t size) {
    if (shape.size() < from_end || shape[shape.size() - from_end] != size) return false;
    shape.erase(shape.end() - static_cast<std::ptrdiff_t>(from_end));
    names.erase(names.end() - static_cast<std::ptrdiff_t>(from_end));
    return true;
  };
  const bool has_samples = page.samples > 1 && drop(1, page.samples);
  if (!drop(1, page.width) || !drop(1, page.height)) return false;
  if (page.samples > 1 && !has_samples && !drop(1, page.samples)) return false;
  axes.clear();
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] != 1) axes.push_back({names[i], shape[i]});
  }
  // Axes without a meaning are taken as ours: C, Z, Y, X.
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::size_t left = axes.size() - i;
    char& name = axes[i].name;
    if (name == 'C' || name == 'Z' || name == 'T') continue;
    name = left > 2 ? 'T' : left == 2 || names.find('Z') != std::string::npos ? 'C' : 'Z';
  }
  return true;
}

/// tifffile's series, one after the other. False when the file is not made of them.
bool shaped_layout(const std::string& path,
                   const std::vector<TiffPage>& all,
                   const Indices& pages,
                   std::size_t file_bytes,
                   int64_t scene,
                   TiffLayout& layout) {
  std::vector<std::size_t> starts;  // in `pages`
  for (std::size_t i = 0; i < pages.size(); ++i) {
    if (starts_with(all[pages[i]].description, "{\"shape\"")) starts.push_back(i);
  }
  if (starts.empty() || starts[0] != 0) return false;
  check_scene(path, scene, starts.size());
  const auto index = static_cast<std::size_t>(scene);
  const std::size_t begin = starts[index],
                    end = index + 1 < starts.size() ? starts[index + 1] : pages.size();
  std::vector<TiffAxis> axes;
  if (!shaped_axes(all[pages[begin]], axes, layout.is_contiguous)) {
    if (starts.size() == 1) return false;
    axes = {{'Z', static_cast<int64_t>(end - begin)}};
    layout.is_contiguous = false;
  }
  int64_t planes = static_cast<int64_t>(end - begin);
  if (layout.is_contiguous) {
    planes = 1;
    for (const TiffAxis& axis : axes) {
      if (__builtin_mul_overflow(planes, axis.size, &planes)) return false;
    }
    if (!fits(all[pages[begin]], planes, file_bytes)) {
      throw DataError(
          fmt::format("{}: {} planes of tifffile's behind one page are more than the "
                      "file holds, expected all; the file may be truncated",
                      path,
                      planes));
    }
  }
  layout.scenes = static_cast<int64_t>(starts.size());
  place(path, axes, planes, layout);
  const Indices part(pages.begin() + static_cast<std::ptrdiff_t>(begin),
                     pages.begin() + static_cast<std::ptrdiff_t>(end));
  if (layout.is_contiguous) {
    layout.contiguous_page = part[0];
  } else {
    map_to(part, layout);
  }
  return true;
}

/// Pages of one size are the planes of a scene. Aperio's levels are its pages in tiles.
TiffLayout plain_layout(const std::string& path,
                        const std::vector<TiffPage>& all,
                        const Indices& pages,
                        int64_t scene) {
  const bool is_aperio = starts_with(all[0].description, "Aperio") && all[0].is_tiled;
  TiffLayout layout;
  std::vector<Indices> groups;
  std::map<std::array<uint32_t, 5>, std::size_t> known;
  for (const std::size_t i : pages) {
    const TiffPage& page = all[i];
    if (is_aperio && i > 0 && page.is_tiled && page.like(all[0])) {
      if (scene == 0) layout.smaller.push_back({i});
      continue;
    }
    const auto [entry, is_new] = known.insert(
        {{page.width, page.height, page.bits, page.format, page.samples}, groups.size()});
    if (is_new) groups.emplace_back();
    groups[entry->second].push_back(i);
  }
  check_scene(path, scene, groups.size());
  const Indices& group = groups[static_cast<std::size_t>(scene)];
  layout.scenes = static_cast<int64_t>(groups.size());
  const auto count = static_cast<int64_t>(group.size());
  place(path, {{'Z', count}}, count, layout);
  map_to(group, layout);
  if (!is_aperio) find_smaller(all, layout);
  return layout;
}

}  // namespace

TiffLayout tiff_layout(const std::string& path,
                       const std::vector<TiffPage>& pages,
                       std::size_t file_bytes,
                       int64_t wanted) {
  const std::string& description = pages[0].description;
  if (description.find("<OME") != std::string::npos ||
      description.find(":OME ") != std::string::npos)
    return ome_layout(path, description, pages, wanted);
  const int64_t scene = wanted == -1 ? 0 : wanted;
  const Indices full = full_pages(pages);
  if (starts_with(description, "ImageJ=")) {
    check_scene(path, scene, 1);
    return imagej_layout(path, pages, full, file_bytes);
  }
  TiffLayout layout;
  if (shaped_layout(path, pages, full, file_bytes, scene, layout)) return layout;
  return plain_layout(path, pages, full, scene);
}

}  // namespace cytra::io
