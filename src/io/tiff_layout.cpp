#include "io/tiff_layout.h"

#include <cmath>
#include <cstdlib>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/log.h"
#include "base/strings.h"
#include "io/ome_xml.h"

namespace cytra::io {
namespace {

struct Axis {
  char name;  // 'C', 'Z' or 'T'
  int64_t size;
};

/// Micrometres per unit; 0 for a unit we don't know ("pixel", "inch" of a screen).
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

/// Pages run over `axes`, the slowest first.
void place(const std::string& path,
           const std::vector<Axis>& axes,
           int64_t page_count,
           TiffLayout& layout) {
  int64_t product = 1;
  for (const Axis& axis : axes) {
    if (axis.size < 1)
      throw DataError(path + ": the description has an axis without extent, expected at least 1");
    if (axis.name == 'T' && axis.size > 1) {
      throw DataError(
          fmt::format("{}: {} time points, expected one; split the series into a file per time "
                      "point (or, when they "
                      "are planes, swap slices and frames in ImageJ: Image > Properties)",
                      path,
                      axis.size));
    }
    (axis.name == 'C' ? layout.channels : axis.name == 'Z' ? layout.planes : product) *= axis.size;
    product = layout.channels * layout.planes;
    if (axis.size > page_count || product > page_count) {
      throw DataError(
          fmt::format("{}: the description names more planes than the {} page{} that the file has, "
                      "expected one page "
                      "for each; the file may be truncated, or be one of several that belong "
                      "together: save it as one OME-TIFF",
                      path,
                      page_count,
                      page_count == 1 ? "" : "s"));
    }
  }
  if (product < page_count)
    log::debug("{}: {} pages beyond the first image are left out", path, page_count - product);
  layout.pages.assign(static_cast<std::size_t>(product), 0);
  for (int64_t page = 0; page < product; ++page) {
    int64_t rest = page, channel = 0, plane = 0, channel_step = 1, plane_step = 1;
    for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
      int64_t& index = axis->name == 'C' ? channel : plane;
      int64_t& step = axis->name == 'C' ? channel_step : plane_step;
      index += rest % axis->size * step;
      step *= axis->size;
      rest /= axis->size;
    }
    layout.pages[static_cast<std::size_t>(channel * layout.planes + plane)] =
        static_cast<std::size_t>(page);
  }
}

int64_t whole_number(const std::string& path, const std::string& what, const std::string& text) {
  char* end = nullptr;
  const long long number = std::strtoll(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0' || number < 0 || number > INT32_MAX) {
    throw DataError(path + ": " + what + " is '" + text.substr(0, 40) +
                    "', expected a whole number");
  }
  return number;
}

class OmeReader {
 public:
  OmeReader(const std::string& path, const TiffPages& pages) : path_(path), pages_(pages) {}

  TiffLayout read(const std::string& xml) {
    XmlElement element;
    std::size_t at = 0;
    while (next_element(xml, at, element) && element.name != "Pixels") {
    }
    if (element.name != "Pixels") fail("has no Pixels");
    read_pixels(element.attributes);
    std::vector<std::size_t> pages(layout_.pages.size(), SIZE_MAX);
    bool is_mapped = false;
    while (next_element(xml, at, element) && element.name != "/Pixels") {
      if (element.name == "Channel") layout_.channel_names.push_back(element.attributes["Name"]);
      if (element.name == "TiffData" && !element.attributes.empty()) {
        map_pages(element.attributes, pages);
        is_mapped = true;
      }
    }
    if (is_mapped) {
      for (std::size_t& page : layout_.pages) page = pages[page];
    }
    for (const std::size_t page : layout_.pages) {
      if (page >= static_cast<std::size_t>(pages_.count))
        fail("gives a plane no page of this file");
    }
    return layout_;
  }

 private:
  using Attributes = std::map<std::string, std::string>;

  [[noreturn]] void fail(const std::string& what) const {
    throw DataError(path_ + ": its OME-XML " + what +
                    ", expected OME-TIFF in one file; save it again as OME-TIFF");
  }
  int64_t number(const Attributes& attributes, const std::string& name, int64_t otherwise) const {
    const auto found = attributes.find(name);
    return found == attributes.end() ? otherwise
                                     : whole_number(path_, "OME-XML " + name, found->second);
  }

  void read_pixels(const Attributes& attributes) {
    if (number(attributes, "SizeX", pages_.width) != pages_.width ||
        number(attributes, "SizeY", pages_.height) != pages_.height) {
      fail("names another width and height than the pages have");
    }
    const auto order = attributes.find("DimensionOrder");
    order_ = order == attributes.end() ? "XYZCT" : order->second;
    if (order_.size() != 5) fail("has the DimensionOrder '" + order_.substr(0, 20) + "'");
    const int64_t channels = number(attributes, "SizeC", pages_.samples);
    if (channels % pages_.samples != 0)
      fail("names a number of channels that is no multiple of the samples per pixel");
    std::vector<Axis> axes;
    for (const char name : {order_[4], order_[3], order_[2]}) {
      const int64_t size = name == 'C' ? channels / pages_.samples
                                       : number(attributes, std::string("Size") + name, 1);
      for (const Axis& axis : axes) {
        if (axis.name == name) fail("has the DimensionOrder '" + order_ + "'");
      }
      if (name != 'C' && name != 'Z' && name != 'T')
        fail("has the DimensionOrder '" + order_ + "'");
      axes.push_back({name, size});
    }
    place(path_, axes, pages_.count, layout_);
    constexpr const char* kSides[] = {"PhysicalSizeZ", "PhysicalSizeY", "PhysicalSizeX"};
    for (std::size_t side = 0; side < 3; ++side) {
      const auto size = attributes.find(kSides[side]);
      if (size == attributes.end()) continue;
      const auto unit = attributes.find(std::string(kSides[side]) + "Unit");
      layout_.geometry.spacing_um[side] =
          spacing_of(std::strtod(size->second.c_str(), nullptr),
                     unit == attributes.end() ? 1 : micrometres(unit->second));
    }
  }

  /// pages[n]: the page of the n-th plane in DimensionOrder.
  void map_pages(const Attributes& data, std::vector<std::size_t>& pages) const {
    const int64_t channel = number(data, "FirstC", 0) / pages_.samples,
                  plane = number(data, "FirstZ", 0);
    if (number(data, "FirstT", 0) != 0 || channel >= layout_.channels || plane >= layout_.planes) {
      fail("has TiffData outside of its sizes");
    }
    const auto first = static_cast<int64_t>(
        layout_.pages[static_cast<std::size_t>(channel * layout_.planes + plane)]);
    const auto total = static_cast<int64_t>(pages.size());
    const int64_t page = number(data, "IFD", 0);
    const int64_t count = number(data, "PlaneCount", data.count("IFD") != 0 ? 1 : total - first);
    for (int64_t i = 0; i < std::min(count, total - first); ++i) {
      pages[static_cast<std::size_t>(first + i)] = static_cast<std::size_t>(page + i);
    }
  }

  const std::string& path_;
  const TiffPages& pages_;
  std::string order_;
  TiffLayout layout_;
};

TiffLayout imagej_layout(const std::string& path,
                         const std::string& description,
                         const TiffPages& pages) {
  std::map<std::string, std::string> fields;
  for (const std::string& line : split(description, '\n')) {
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
  if (images > pages.count) {
    throw DataError(
        fmt::format("{}: an ImageJ stack of {} images in {} page{}, expected one page for each; "
                    "save it as OME-TIFF or "
                    "BigTIFF (ImageJ leaves the pages out above 4 GB)",
                    path,
                    images,
                    pages.count,
                    pages.count == 1 ? "" : "s"));
  }
  if (channels * slices * frames == 1) slices = pages.count;  // written without hyperstack fields
  TiffLayout layout;
  place(path, {{'T', frames}, {'Z', slices}, {'C', channels}}, pages.count, layout);
  const double unit = micrometres(fields["unit"]);
  if (pages.x_per_unit > 0 && pages.y_per_unit > 0) {
    layout.geometry.spacing_um = {spacing_of(std::strtod(fields["spacing"].c_str(), nullptr), unit),
                                  spacing_of(1 / pages.y_per_unit, unit),
                                  spacing_of(1 / pages.x_per_unit, unit)};
  }
  return layout;
}

/// tifffile's {"shape": [...], "axes": "..."}; the shape ends in Y, X [, samples] or samples, Y, X.
bool shaped_layout(const std::string& path,
                   const std::string& description,
                   const TiffPages& pages,
                   TiffLayout& layout) {
  const nlohmann::json json = nlohmann::json::parse(description, nullptr, false);
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
  const auto drop = [&](std::size_t from_end, int64_t size) {
    if (shape.size() < from_end || shape[shape.size() - from_end] != size) return false;
    shape.erase(shape.end() - static_cast<std::ptrdiff_t>(from_end));
    names.erase(names.end() - static_cast<std::ptrdiff_t>(from_end));
    return true;
  };
  bool has_samples = pages.samples > 1 && drop(1, pages.samples);
  if (!drop(1, pages.width) || !drop(1, pages.height)) return false;
  if (pages.samples > 1 && !has_samples && !drop(1, pages.samples)) return false;
  std::vector<Axis> axes;
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
  place(path, axes, pages.count, layout);
  return true;
}

}  // namespace

TiffLayout tiff_layout(const std::string& path,
                       const std::string& description,
                       const TiffPages& pages) {
  if (description.find("<OME") != std::string::npos ||
      description.find(":OME ") != std::string::npos) {
    return OmeReader(path, pages).read(description);
  }
  if (starts_with(description, "ImageJ=")) return imagej_layout(path, description, pages);
  TiffLayout layout;
  if (!starts_with(description, "{\"shape\"") || !shaped_layout(path, description, pages, layout)) {
    place(path, {{'Z', pages.count}}, pages.count, layout);
  }
  return layout;
}

}  // namespace cytra::io
