#include "io/objects/imagej_roi.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "base/error.h"
#include "io/compression/zip_writer.h"
#include "io/objects/geojson.h"
#include "io/objects/palette.h"

namespace cytra::io {
namespace {

constexpr std::size_t kRoiHeader = 64, kRoiHeader2 = 64;

void put_big(std::string& out, std::size_t at, uint32_t value, int bytes) {
  if (out.size() < at + static_cast<std::size_t>(bytes))
    out.resize(at + static_cast<std::size_t>(bytes));
  for (int i = 0; i < bytes; ++i)
    out[at + static_cast<std::size_t>(i)] =
        static_cast<char>(value >> (8 * (bytes - 1 - i)) & 0xff);
}

void append_float(std::string& out, double value) {
  const auto real = static_cast<float>(value);
  uint32_t bits;
  std::memcpy(&bits, &real, sizeof bits);
  put_big(out, out.size(), bits, 4);
}

/// Appends the segments of java.awt.geom.PathIterator.
void append_path(std::string& out, const Ring& ring) {
  constexpr double kMove = 0, kLine = 1, kClose = 4;
  for (std::size_t i = 0; i < ring.size(); ++i) {
    append_float(out, i == 0 ? kMove : kLine);
    append_float(out, ring[i][0]);
    append_float(out, ring[i][1]);
  }
  append_float(out, kClose);
}

/// The bytes of a ROI. `plane`, `z`: positions in a stack, from 1; 0: none.
std::string roi_of(const std::vector<const Polygon*>& object,
                   const std::string& name,
                   int64_t plane,
                   int64_t z) {
  std::array<double, 2> low = object[0]->outer[0], high = low;
  bool is_composite = object.size() > 1;
  for (const Polygon* polygon : object) {
    is_composite = is_composite || !polygon->holes.empty();
    for (const auto& corner : polygon->outer) {
      for (std::size_t i = 0; i < 2; ++i) {
        low[i] = std::min(low[i], corner[i]);
        high[i] = std::max(high[i], corner[i]);
      }
    }
  }
  constexpr uint32_t kVersion = 228, kRectangle = 1, kTraced = 8;
  const auto& [red, green, blue] = label_colour(object[0]->label);
  std::string roi = "Iout";
  put_big(roi, 4, kVersion, 2);
  put_big(roi, 6, is_composite ? kRectangle : kTraced, 1);
  put_big(roi, 8, static_cast<uint32_t>(low[1]), 2);
  put_big(roi, 10, static_cast<uint32_t>(low[0]), 2);
  put_big(roi, 12, static_cast<uint32_t>(high[1]), 2);
  put_big(roi, 14, static_cast<uint32_t>(high[0]), 2);
  put_big(roi, 40, 0xff000000U | uint32_t{red} << 16 | uint32_t{green} << 8 | uint32_t{blue}, 4);
  put_big(roi, 56, static_cast<uint32_t>(plane), 4);
  roi.resize(kRoiHeader);
  if (is_composite) {
    for (const Polygon* polygon : object) {
      append_path(roi, polygon->outer);
      for (const Ring& hole : polygon->holes) append_path(roi, hole);
    }
    put_big(roi, 36, static_cast<uint32_t>((roi.size() - kRoiHeader) / 4), 4);
  } else {
    const Ring& ring = object[0]->outer;
    const auto count = static_cast<uint32_t>(ring.size());
    if (count <= 0xffff) {
      put_big(roi, 16, count, 2);
    } else {
      put_big(roi, 18, count, 4);
    }
    for (const std::size_t axis : {0, 1}) {
      for (const auto& corner : ring)
        put_big(roi, roi.size(), static_cast<uint32_t>(corner[axis] - low[axis]), 2);
    }
  }
  const auto second = static_cast<uint32_t>(roi.size());
  put_big(roi, 60, second, 4);
  put_big(roi, second + 8, static_cast<uint32_t>(z), 4);
  put_big(roi, second + 16, second + kRoiHeader2, 4);  // of the name
  put_big(roi, second + 20, static_cast<uint32_t>(name.size()), 4);
  roi.resize(second + kRoiHeader2);
  for (const char letter : name) put_big(roi, roi.size(), static_cast<unsigned char>(letter), 2);
  return roi;
}

}  // namespace

void write_imagej_rois(const std::string& path,
                       const std::vector<Polygon>& polygons,
                       bool is_stack,
                       int64_t channels) {
  constexpr double kFarthest =
      60'000;  // its coordinates have 16 bits, whose highest it takes for a sign
  for (const Polygon& polygon : polygons) {
    for (const auto& corner : polygon.outer) {
      if (std::max(corner[0], corner[1]) > kFarthest) {
        throw DataError(
            "{}: an object at pixel {}, expected at most {} in an ImageJ ROI; write GeoJSON",
            path,
            std::max(corner[0], corner[1]),
            kFarthest);
      }
    }
  }
  ZipWriter zip(path);
  for (const std::vector<const Polygon*>& object : group_by_object(polygons)) {
    const std::string name = is_stack ? fmt::format("{:04}-{}", object[0]->z + 1, object[0]->label)
                                      : std::to_string(object[0]->label);
    const int64_t z = is_stack ? object[0]->z + 1 : 0;
    zip.add(name + ".roi", roi_of(object, name, channels > 1 ? 0 : z, channels > 1 ? z : 0));
  }
  zip.finish();
}

}  // namespace cytra::io
