// Part of io/tiff/layout.h: ImageJ's and Fiji's TIFFs. Source: ij.io.TiffEncoder and FileSaver, and
// tifffile's _series_imagej.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>

#include "base/error.h"
#include "base/strings.h"
#include "io/pixels/format.h"
#include "io/tiff/layout.h"

namespace cytra::io {
namespace {

using Fields = std::map<std::string, std::string>;

Fields fields_of(const std::string& description) {
  Fields fields;
  for (const std::string& line : split(description, '\n')) {
    const std::size_t equals = line.find('=');
    if (equals != std::string::npos) fields[line.substr(0, equals)] = trim(line.substr(equals + 1));
  }
  return fields;
}

/// The order of axes: "czt", the fastest first, unless the file names another one.
std::string order_of(const Fields& fields) {
  const auto found = fields.find("order");
  const std::string order = found == fields.end() ? "czt" : found->second;
  const std::string axes = "czt";
  return std::is_permutation(order.begin(), order.end(), axes.begin(), axes.end()) ? order : axes;
}

/// The geometry as ImageJ calibrates it: the resolution is in pixels per `unit`, whatever the tag
/// for its unit says, but for um beside centimetres; the origin is a pixel.
Geometry calibration(const TiffPage& page, Fields& fields, bool is_stack) {
  const double unit = micrometres(fields["unit"]);
  const auto other = [&](const char* key) {  // where it is not that of x
    return fields.count(key) == 0 ? unit : micrometres(fields[key]);
  };
  const auto number = [&](const char* key, double otherwise) {
    const auto found = fields.find(key);
    return found == fields.end() ? otherwise : std::strtod(found->second.c_str(), nullptr);
  };
  const bool is_cm = page.resolution_unit == RESUNIT_CENTIMETER && fields["unit"] == "um";
  const auto side = [&](double per_unit) {
    return (per_unit > 0 ? 1 / per_unit : 1) * (is_cm ? 1e4 : 1);
  };
  std::vector<double> steps{side(page.x_per_unit) * unit, side(page.y_per_unit) * other("yunit")};
  if (is_stack) steps.push_back(std::abs(number("spacing", 1)) * other("zunit"));
  std::vector<double> origin;
  bool is_placed = false;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    constexpr const char* kOrigins[] = {"xorigin", "yorigin", "zorigin"};
    is_placed = is_placed || fields.count(kOrigins[i]) > 0;
    origin.push_back(-number(kOrigins[i], 0) * steps[i]);
  }
  return axis_aligned_geometry(steps, is_placed ? &origin : nullptr);
}

}  // namespace

TiffLayout imagej_layout(const TiffFile& file,
                         const PageIndices& pages,
                         const Selection& selection) {
  const std::string& path = file.path();
  const TiffPage& page = file.pages()[0];
  Fields fields = fields_of(page.description);
  const auto size = [&](const char* name) {
    return fields.count(name) != 0
               ? whole_number(path, std::string("ImageJ's ") + name, fields[name])
               : 1;
  };
  const int64_t images = size("images"), frames = size("frames");
  int64_t channels = size("channels"), slices = size("slices");
  auto count = std::ssize(pages);
  const auto planes = [&] {  // may be beyond any integer
    return double{1} * static_cast<double>(frames) * static_cast<double>(slices) *
           static_cast<double>(channels);
  };
  // Samples of one page may be counted as channels.
  if (channels == page.samples && planes() > static_cast<double>(count)) channels = 1;
  if (channels == 1 && slices == 1 && frames == 1 && (images != page.samples || count > 1))
    slices = std::max(images, count);  // written without hyperstack fields
  const double wanted = planes();
  TiffLayout layout;
  // Above 4 GB ImageJ writes only the directory of the first plane.
  layout.is_contiguous = wanted > 1 && wanted <= INT32_MAX && count == 1 &&
                         fits(page, static_cast<int64_t>(wanted), file.bytes());
  if (layout.is_contiguous) {
    count = static_cast<int64_t>(wanted);
  } else if (wanted > static_cast<double>(count)) {
    throw DataError(
        "{}: an ImageJ stack of {} images in {} page{}, expected one page for each, or one in "
        "front of the pixels of all; the file may be truncated",
        path,
        wanted,
        count,
        count == 1 ? "" : "s");
  }
  std::vector<TiffAxis> axes;
  for (const char name : order_of(fields)) {
    const TiffAxis axis = name == 'c'   ? TiffAxis{'C', channels}
                          : name == 'z' ? TiffAxis{'Z', slices}
                                        : TiffAxis{'T', frames};
    axes.insert(axes.begin(), axis);
  }
  place(path, named(path, selection.axes, axes), count, layout);
  if (!layout.is_contiguous) map_to(pages, layout);
  layout.geometry = calibration(page, fields, layout.planes > 1);
  return layout;
}

}  // namespace cytra::io
