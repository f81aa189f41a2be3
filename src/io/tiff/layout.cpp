#include "io/tiff/layout.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/strings.h"
#include "io/pixels/format.h"

namespace cytra::io {

void check_scene(const std::string& path, int64_t scene, std::size_t scenes) {
  if (scene >= 0 && static_cast<std::size_t>(scene) < scenes) return;
  throw DataError("{}: no scene {}, expected 0{}",
                  path,
                  scene,
                  scenes > 1 ? fmt::format(" to {}", scenes - 1) : "");
}

std::vector<TiffAxis> named(const std::string& path,
                            const std::string& names,
                            std::vector<TiffAxis> axes) {
  std::string own;
  std::vector<int64_t> sizes;
  for (const TiffAxis& axis : axes) {
    own += axis.name;
    sizes.push_back(axis.size);
  }
  const std::string chosen = plane_axes(path, names, own, sizes);
  std::vector<TiffAxis> result;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (chosen[i] != '-') result.push_back({chosen[i], axes[i].size});
  }
  return result;
}

// The most planes: with one directory a sparse file can claim any number of them.
constexpr int64_t kMostPlanes = 10'000'000;

void place(const std::string& path,
           const std::vector<TiffAxis>& axes,
           int64_t count,
           TiffLayout& layout) {
  // The sizes of the axes of each name, and their steps in pages.
  constexpr char kNames[] = "TCZ";
  int64_t sizes[] = {1, 1, 1}, product = 1;
  for (const TiffAxis& axis : axes) {
    if (axis.size < 1)
      throw DataError(path + ": the description has an axis without extent, expected at least 1");
    if (axis.size > count || (product *= axis.size) > count) {
      throw DataError(
          "{}: the description names more planes than the {} page{} that the file has, expected "
          "one page for each; the file may be truncated, or be one of several that belong "
          "together: save it as one OME-TIFF",
          path,
          count,
          count == 1 ? "" : "s");
    }
    sizes[std::string_view(kNames).find(axis.name)] *= axis.size;
  }
  if (product > kMostPlanes) {
    throw DataError(
        "{}: {} planes, expected at most {}; the file may be damaged", path, product, kMostPlanes);
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

void map_to(const PageIndices& indices, TiffLayout& layout) {
  for (std::size_t& page : layout.pages) page = indices[page];
}

bool fits(const TiffPage& page, int64_t planes, std::size_t file_bytes) {
  return double{1} * page.width * page.height * page.samples * page.bits / 8 *
             static_cast<double>(planes) <=
         static_cast<double>(file_bytes);
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

/// All pages except smaller copies; the first page always counts.
PageIndices full_pages(const std::vector<TiffPage>& pages) {
  PageIndices full = {0};
  for (std::size_t i = 1; i < pages.size(); ++i) {
    if (!pages[i].is_reduced) full.push_back(i);
  }
  return full;
}

/// Whether both have the same ratio of width and height, up to rounding.
bool is_same_form(const TiffPage& small, const TiffPage& large) {
  const double by_width = double{1} * large.width / small.width,
               by_height = double{1} * large.height / small.height;
  return std::abs(small.height * (by_height - by_width)) <= 2 * by_width + 2;
}

/// Finds smaller copies that follow the layout's pages, one for each of them at each level. A page
/// of another image, such as a slide's label, may be in between.
void find_smaller(const std::vector<TiffPage>& pages, TiffLayout& layout) {
  const TiffPage& ours = pages[layout.pages[0]];
  std::vector<PageIndices> levels;
  bool is_ours = false, was_ours = false;
  std::size_t full = 0;
  for (std::size_t i = 0; i < pages.size(); ++i) {
    const TiffPage& page = pages[i];
    if (i == 0 || !page.is_reduced) {
      full = i;
      is_ours = std::ranges::binary_search(layout.pages, i);
      was_ours = was_ours || is_ours;
      continue;
    }
    // A page that is larger than the one before is no copy of it.
    if (was_ours && (page.width > pages[full].width || page.height > pages[full].height) &&
        is_same_form(page, ours))
      is_ours = true;
    if (!is_ours || !page.like(ours)) continue;
    const auto same = std::ranges::find_if(
        levels, [&](const PageIndices& level) { return pages[level[0]].same_as(page); });
    if (same != levels.end()) {
      same->push_back(i);
    } else if (levels.size() < 32) {
      levels.push_back({i});
    }
  }
  for (PageIndices& level : levels) {
    const TiffPage& larger =
        pages[layout.smaller.empty() ? layout.pages[0] : layout.smaller.back()[0]];
    if (level.size() == layout.pages.size() && pages[level[0]].width < larger.width &&
        pages[level[0]].height <= larger.height)
      layout.smaller.push_back(std::move(level));
  }
}

/// Reads the axes of tifffile's {"shape": [...], "axes": "..."} before Y, X [, samples] or
/// samples, Y, X. Returns false when it does not fit this page.
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

/// The layout of tifffile's series, which follow each other. Returns false when the file does not
/// consist of them.
bool shaped_layout(const std::string& path,
                   const std::vector<TiffPage>& all,
                   const PageIndices& pages,
                   std::size_t file_bytes,
                   const Selection& selection,
                   TiffLayout& layout) {
  const int64_t scene = selection.scene;
  std::vector<std::size_t> starts;  // in `pages`
  for (std::size_t i = 0; i < pages.size(); ++i) {
    if (all[pages[i]].description.starts_with("{\"shape\"")) starts.push_back(i);
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
          "{}: {} planes of tifffile's behind one page are more than the file holds, expected all; "
          "the file may be truncated",
          path,
          planes);
    }
  }
  layout.scenes = std::ssize(starts);
  place(path, named(path, selection.axes, axes), planes, layout);
  const PageIndices part(pages.begin() + static_cast<std::ptrdiff_t>(begin),
                         pages.begin() + static_cast<std::ptrdiff_t>(end));
  if (layout.is_contiguous) {
    layout.contiguous_page = part[0];
  } else {
    map_to(part, layout);
  }
  return true;
}

/// The pixel size that Aperio's descriptions have, "|MPP = 0.4990", in um.
Geometry aperio_geometry(const std::string& description) {
  constexpr std::string_view kKey = "MPP = ";
  const std::size_t at = description.find(kKey);
  double side = 0;
  if (at == std::string::npos) return {};
  const char* const begin = description.data() + at + kKey.size();
  std::from_chars(begin, description.data() + description.size(), side);
  return side > 0 && side < 1e6 ? axis_aligned_geometry({side, side}, nullptr) : Geometry();
}

/// The layout without a description: pages of one size are the planes of a scene. Aperio's levels
/// are its pages in tiles.
TiffLayout plain_layout(const std::string& path,
                        const std::vector<TiffPage>& all,
                        const PageIndices& pages,
                        const Selection& selection) {
  const int64_t scene = selection.scene;
  const bool is_aperio = all[0].description.starts_with("Aperio") && all[0].is_tiled;
  TiffLayout layout;
  std::vector<PageIndices> groups;
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
  const PageIndices& group = groups[static_cast<std::size_t>(scene)];
  layout.scenes = std::ssize(groups);
  if (is_aperio) layout.own_scenes = {0};
  const auto count = std::ssize(group);
  const bool is_akoya = all[0].description.find("<PerkinElmer-QPI") != std::string::npos;
  place(path, named(path, selection.axes, {{is_akoya ? 'C' : 'Z', count}}), count, layout);
  map_to(group, layout);
  if (!is_aperio) find_smaller(all, layout);
  if (is_aperio) layout.geometry = aperio_geometry(all[0].description);
  return layout;
}

}  // namespace

TiffLayout tiff_layout(const TiffFile& file, const Selection& wanted) {
  const std::string& path = file.path();
  const std::vector<TiffPage>& pages = file.pages();
  const std::string& description = pages[0].description;
  if (description.find("<OME") != std::string::npos ||
      description.find(":OME ") != std::string::npos)
    return ome_layout(path, description, pages, wanted);
  Selection selection = wanted;
  if (selection.scene == -1) selection.scene = 0;
  const PageIndices full = full_pages(pages);
  if (description.starts_with("ImageJ=")) {
    check_scene(path, selection.scene, 1);
    return imagej_layout(file, full, selection);
  }
  TiffLayout layout;
  if (lsm_layout(file, full, selection, layout)) return layout;
  if (stk_layout(file, selection, layout)) return layout;
  if (shaped_layout(path, pages, full, file.bytes(), selection, layout)) return layout;
  return plain_layout(path, pages, full, selection);
}

}  // namespace cytra::io
