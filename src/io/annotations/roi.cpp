// Part of io/annotations/formats.h: ImageJ's ROIs. Source: ij.io.RoiDecoder of ImageJ 1.54; its
// files are big-endian on any machine.
#include <algorithm>
#include <cmath>
#include <cstring>

#include <fmt/format.h>
#include <zlib.h>

#include "base/error.h"
#include "base/strings.h"
#include "io/annotations/formats.h"
#include "io/annotations/shapes.h"
#include "io/weights/zip_directory.h"

namespace cytra::io {
namespace {

enum RoiType { kPolygon = 0, kRect = 1, kOval = 2, kFreehand = 7, kTraced = 8 };
constexpr int64_t kEllipse = 3, kRotatedRect = 5, kSubPixel = 128;
constexpr uint64_t kMostRoiBytes = uint64_t{1} << 28;

class RoiFile {
 public:
  RoiFile(const std::string& place, std::string_view bytes) : place_(place), bytes_(bytes) {}

  /// Reads a ROI; false where it has no area: a line, a point, a text.
  bool read(Annotation& object) {
    if (!bytes_.starts_with("Iout")) refuse("it does not begin as an ImageJ ROI (Iout)");
    const int64_t type = integer(6, 1), subtype = integer(48, 2), shape_floats = integer(36, 4);
    is_fine_ = (integer(50, 2) & kSubPixel) != 0 && integer(4, 2) >= 222;
    constexpr int64_t kText = 1, kImage = 4;
    if (subtype == kText || subtype == kImage) return false;
    if (type == kRect && shape_floats > 0) {
      object.parts.push_back(path(shape_floats));
    } else if (type == kRect || type == kOval) {
      object.parts.push_back({type == kOval ? oval() : rounded(integer(54, 2))});
    } else if (type == kFreehand && subtype == kEllipse) {
      object.parts.push_back({turned_ellipse()});
    } else if (type == kFreehand && subtype == kRotatedRect) {
      object.parts.push_back({turned_rectangle()});
    } else if (type == kPolygon || type == kFreehand || type == kTraced) {
      object.parts.push_back({polygon()});
    } else {
      return false;
    }
    object.box = box_around(object);
    read_second_header(object);
    return true;
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw DataError("{}: {}, expected a whole ImageJ ROI; save it again", place_, what);
  }
  uint64_t raw(uint64_t at, uint64_t size) const {
    if (at > bytes_.size() || size > bytes_.size() - at) refuse("it ends too early");
    uint64_t value = 0;
    for (uint64_t i = 0; i < size; ++i)
      value = value << 8 | static_cast<unsigned char>(bytes_[at + i]);
    return value;
  }
  int64_t integer(uint64_t at, uint64_t size) const {
    const auto value = static_cast<int64_t>(raw(at, size));
    if (size == 4 && value > INT32_MAX) refuse("a negative size");
    return value;
  }
  /// Reads a side as RoiDecoder.getShort(): numbers below -5000 stand for those above 32767.
  double side(uint64_t at) const {
    const auto value = static_cast<int64_t>(static_cast<int16_t>(raw(at, 2)));
    return static_cast<double>(value < -5000 ? value + 65536 : value);
  }
  double real(uint64_t at) const {
    const auto bits = static_cast<uint32_t>(raw(at, 4));
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return coordinate(place_, static_cast<double>(value));
  }

  std::array<double, 4> bounds() const {  // x0, y0, x1, y1
    if (is_fine_) {
      const double x = real(18), y = real(22);
      return {x, y, x + real(26), y + real(30)};
    }
    return {side(10), side(8), side(14), side(12)};
  }
  Ring oval() const {
    const auto [x0, y0, x1, y1] = bounds();
    return ellipse({(x0 + x1) / 2, (y0 + y1) / 2}, {(x1 - x0) / 2, 0}, {0, (y1 - y0) / 2});
  }
  /// A rectangle with rounded corners. `arc`: diameter of the corners' circles.
  Ring rounded(int64_t arc) const {
    const auto box = bounds();
    if (arc <= 0) return rectangle(box);
    const auto [x0, y0, x1, y1] = box;
    const double rx = std::min(static_cast<double>(arc), x1 - x0) / 2,
                 ry = std::min(static_cast<double>(arc), y1 - y0) / 2;
    Ring ring = ellipse({0, 0}, {rx, 0}, {0, ry});
    for (auto& [x, y] : ring) {
      x += x > 0 ? x1 - rx : x0 + rx;
      y += y > 0 ? y1 - ry : y0 + ry;
    }
    return ring;
  }
  /// An axis from one end to the other; `across`: half the width, at right angles.
  struct Axis {
    std::array<double, 2> from, to, across;
  };
  Axis axis(double width) const {
    const std::array<double, 2> from{real(18), real(22)}, to{real(26), real(30)};
    const double dx = to[0] - from[0], dy = to[1] - from[1], length = std::hypot(dx, dy);
    if (length <= 0) refuse("an axis without a length");
    return {from, to, {-dy / length * width / 2, dx / length * width / 2}};
  }
  Ring turned_ellipse() const {
    const double length = std::hypot(real(26) - real(18), real(30) - real(22));
    const Axis axis = this->axis(length * real(52));
    return ellipse({(axis.from[0] + axis.to[0]) / 2, (axis.from[1] + axis.to[1]) / 2},
                   {(axis.to[0] - axis.from[0]) / 2, (axis.to[1] - axis.from[1]) / 2},
                   axis.across);
  }
  Ring turned_rectangle() const {
    const auto& [from, to, across] = axis(real(52));
    return {{from[0] + across[0], from[1] + across[1]},
            {to[0] + across[0], to[1] + across[1]},
            {to[0] - across[0], to[1] - across[1]},
            {from[0] - across[0], from[1] - across[1]}};
  }

  Ring polygon() const {
    uint64_t count = raw(16, 2);
    if (count == 0) count = raw(18, 4);
    const uint64_t begin = 64;
    if (count > bytes_.size()) refuse(fmt::format("{} corners in {} bytes", count, bytes_.size()));
    Ring ring(count);
    const double left = side(10), top = side(8);
    for (uint64_t i = 0; i < count; ++i) {
      if (is_fine_) {
        ring[i] = {real(begin + 4 * count + 4 * i), real(begin + 8 * count + 4 * i)};
      } else {
        ring[i] = {left + std::max(0.0, side(begin + 2 * i)),
                   top + std::max(0.0, side(begin + 2 * (count + i)))};
      }
    }
    return ring;
  }

  /// Reads segments of java.awt.geom.PathIterator; curves become lines.
  std::vector<Ring> path(int64_t floats) const {
    constexpr uint64_t kSizes[] = {2, 2, 4, 6, 0};
    std::vector<Ring> rings;
    uint64_t at = 64;
    const uint64_t end = at + 4 * static_cast<uint64_t>(floats);
    while (at < end) {
      const double kind = real(at);
      if (!(kind >= 0 && kind <= 4) || kind != std::floor(kind)) refuse("a path of unknown parts");
      const auto which = static_cast<std::size_t>(kind);
      at += 4;
      std::vector<std::array<double, 2>> corners;
      for (uint64_t i = 0; i < kSizes[which]; i += 2, at += 8)
        corners.push_back({real(at), real(at + 4)});
      if (which == 0) rings.emplace_back();
      if (corners.empty()) continue;
      if (rings.empty()) refuse("a path without a beginning");
      if (corners.size() > 1) {
        append_curve(rings.back(), corners);
      } else {
        rings.back().push_back(corners[0]);
      }
    }
    return rings;
  }
  void append_curve(Ring& ring, const std::vector<std::array<double, 2>>& corners) const {
    constexpr int kSteps = 16;
    if (ring.empty()) refuse("a curve without a beginning");
    std::vector<std::array<double, 2>> all{ring.back()};
    all.insert(all.end(), corners.begin(), corners.end());
    for (int step = 1; step <= kSteps; ++step) {  // de Casteljau
      auto points = all;
      const double t = static_cast<double>(step) / kSteps;
      for (std::size_t left = points.size() - 1; left > 0; --left)
        for (std::size_t i = 0; i < left; ++i)
          for (std::size_t k = 0; k < 2; ++k) points[i][k] += t * (points[i + 1][k] - points[i][k]);
      ring.push_back(points[0]);
    }
  }

  /// Reads its place in a stack, its name, and its group, which is used as its class.
  void read_second_header(Annotation& object) const {
    int64_t position = integer(56, 4);
    const uint64_t second = raw(60, 4);
    if (second > 0 && second + 48 <= bytes_.size()) {
      if (const int64_t z = integer(second + 8, 4); z > 0) position = z;
      uint64_t group = integer(4, 2) >= 228 ? raw(second + 30, 1) : 0;
      if (group == 0 && integer(4, 2) >= 229 && second + 54 <= bytes_.size())
        group = raw(second + 52, 2);
      if (group > 0) object.class_name = std::to_string(group);
      const uint64_t from = raw(second + 16, 4), letters = raw(second + 20, 4);
      if (from > 0 && letters > 0 && letters < 1000 && from + 2 * letters <= bytes_.size()) {
        for (uint64_t i = 0; i < letters; ++i)
          object.name += static_cast<char>(raw(from + 2 * i + 1, 1));
      }
    }
    object.plane = position - 1;  // -1: of all planes
    // "0003-17": object 17 in plane 3. ImageJ's own names have three numbers, those of no object.
    const std::size_t dash = object.name.find('-');
    const bool is_ours = dash != std::string::npos &&
                         object.name.find_first_not_of("0123456789", dash + 1) == std::string::npos;
    object.name = is_ours ? object.name.substr(dash + 1) : "";
  }

  const std::string& place_;
  std::string_view bytes_;
  bool is_fine_ = false;
};

std::string inflated(const std::string& place, std::string_view packed, uint64_t size) {
  if (size > kMostRoiBytes || size / 1100 > packed.size())
    throw DataError("{}: {} bytes, expected an ImageJ ROI", place, size);
  std::string bytes(size, '\0');
  z_stream stream{};
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(bytes.data());
  stream.avail_out = static_cast<uInt>(size);
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) throw MemoryError(place + ": no memory is left");
  const int result = inflate(&stream, Z_FINISH);
  inflateEnd(&stream);
  if (result != Z_STREAM_END || stream.avail_out != 0)
    throw DataError(place + ": damaged in the archive, expected an ImageJ ROI; save it again");
  return bytes;
}

void take_roi(const std::string& place,
              std::string_view bytes,
              std::vector<Annotation>& objects,
              std::size_t& left_out) {
  Annotation object;
  if (RoiFile(place, bytes).read(object)) {
    objects.push_back(std::move(object));
  } else {
    ++left_out;
  }
}

AnnotationFile roi_file(std::vector<Annotation> objects, std::size_t left_out) {
  AnnotationFile file;
  file.without_area = left_out;
  file.images.push_back({"", 0, 0, std::move(objects)});
  return file;
}

}  // namespace

AnnotationFile parse_imagej_roi(const std::string& path, const std::string& bytes) {
  std::vector<Annotation> objects;
  std::size_t left_out = 0;
  take_roi(path, bytes, objects, left_out);
  return roi_file(std::move(objects), left_out);
}

AnnotationFile parse_roi_zip(const std::string& path, const std::string& bytes) {
  std::vector<Annotation> objects;
  std::size_t left_out = 0;
  uint64_t total = 0;
  bool has_any = false;
  for (const ZipEntry& entry : zip_entries(path, bytes)) {
    const std::size_t slash = entry.name.rfind('/');
    const std::string name = entry.name.substr(slash == std::string::npos ? 0 : slash + 1);
    if (!name.ends_with(".roi") || name.starts_with(".")) continue;
    has_any = true;
    const std::string place = fmt::format("{}: {}", path, printable(entry.name, 100));
    if (!entry.is_stored && !entry.is_deflated)
      throw DataError(place + ": encrypted or packed in a rare way, expected a plain archive");
    if ((total += entry.size) > kMostAnnotationBytes)
      throw DataError(path + ": more than 1 GB of ROIs, expected fewer");
    if (entry.is_stored) {
      take_roi(place, entry.packed, objects, left_out);
    } else {
      take_roi(place, inflated(place, entry.packed, entry.size), objects, left_out);
    }
  }
  if (!has_any) throw DataError(path + ": no .roi in this archive, expected ImageJ's RoiSet.zip");
  return roi_file(std::move(objects), left_out);
}

}  // namespace cytra::io
