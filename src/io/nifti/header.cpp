// Part of io/nifti/nifti.h: the headers as bytes, and the pixels and places that they describe.
#include <algorithm>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "base/error.h"
#include "io/nifti/nifti.h"

namespace cytra::io {
namespace {

constexpr std::size_t kFirstSize = 348, kSecondSize = 540;

/// Reads or writes the fields of a header in order.
class HeaderFields {
 public:
  HeaderFields(const std::string& head, bool is_swapped) : head_(head), is_swapped_(is_swapped) {}
  HeaderFields& at(std::size_t place) {
    place_ = place;
    return *this;
  }
  template <class T>
  T next() {
    char bytes[sizeof(T)];
    std::memcpy(bytes, head_.data() + place_, sizeof bytes);
    if (is_swapped_) std::reverse(bytes, bytes + sizeof bytes);
    place_ += sizeof bytes;
    T value;
    std::memcpy(&value, bytes, sizeof value);
    return value;
  }
  template <class T, class Into>
  void next(Into& into) {
    for (auto& value : into) value = static_cast<std::decay_t<decltype(value)>>(next<T>());
  }

 private:
  const std::string& head_;
  bool is_swapped_;
  std::size_t place_ = 0;
};

void put_field(std::string& head, std::size_t at, auto value) {
  std::memcpy(head.data() + at, &value, sizeof value);
}
template <class T, class From>
void put_all(std::string& head, std::size_t at, const From& from) {
  for (std::size_t i = 0; i < from.size(); ++i)
    put_field(head, at + i * sizeof(T), static_cast<T>(from[i]));
}

int32_t size_at_start(const std::string& head, bool is_swapped) {
  return head.size() < 4 ? 0 : HeaderFields(head, is_swapped).next<int32_t>();
}

struct NiftiKind {
  int code;
  NiftiType type;
};
constexpr NiftiKind kNiftiKinds[] = {{2, {{'u', 8}, 1}},
                                     {4, {{'i', 16}, 1}},
                                     {8, {{'i', 32}, 1}},
                                     {16, {{'f', 32}, 1}},
                                     {64, {{'f', 64}, 1}},
                                     {128, {{'u', 8}, 3}},
                                     {256, {{'i', 8}, 1}},
                                     {512, {{'u', 16}, 1}},
                                     {768, {{'u', 32}, 1}},
                                     {1024, {{'i', 64}, 1}},
                                     {1280, {{'u', 64}, 1}},
                                     {2304, {{'u', 8}, 4}}};

double length(double a, double b, double c) {
  return std::sqrt(a * a + b * b + c * c);
}

/// The rotation of a quaternion with real part a >= 0, and back.
std::array<double, 9> rotation_of(double b, double c, double d) {
  const double rest = 1 - b * b - c * c - d * d;
  double a = rest > 0 ? std::sqrt(rest) : 0;
  if (rest < 1e-7) {  // a half turn, up to rounding
    const double norm = length(b, c, d);
    for (double* part : {&b, &c, &d}) *part /= norm;
    a = 0;
  }
  return {a * a + b * b - c * c - d * d,
          2 * (b * c - a * d),
          2 * (b * d + a * c),
          2 * (b * c + a * d),
          a * a + c * c - b * b - d * d,
          2 * (c * d - a * b),
          2 * (b * d - a * c),
          2 * (c * d + a * b),
          a * a + d * d - b * b - c * c};
}

std::array<double, 3> quaternion_of(const std::array<double, 9>& r) {
  const double trace = r[0] + r[4] + r[8];
  double a, b, c, d;
  if (trace > 0) {
    a = std::sqrt(1 + trace) / 2;
    b = (r[7] - r[5]) / (4 * a);
    c = (r[2] - r[6]) / (4 * a);
    d = (r[3] - r[1]) / (4 * a);
    return {b, c, d};
  }
  // The largest of b, c, d comes first, to avoid a division by a number near 0.
  if (r[0] >= r[4] && r[0] >= r[8]) {
    b = std::sqrt(std::max(0.0, 1 + r[0] - r[4] - r[8])) / 2;
    a = (r[7] - r[5]) / (4 * b);
    c = (r[1] + r[3]) / (4 * b);
    d = (r[2] + r[6]) / (4 * b);
  } else if (r[4] >= r[8]) {
    c = std::sqrt(std::max(0.0, 1 + r[4] - r[0] - r[8])) / 2;
    a = (r[2] - r[6]) / (4 * c);
    b = (r[1] + r[3]) / (4 * c);
    d = (r[5] + r[7]) / (4 * c);
  } else {
    d = std::sqrt(std::max(0.0, 1 + r[8] - r[0] - r[4])) / 2;
    a = (r[3] - r[1]) / (4 * d);
    b = (r[2] + r[6]) / (4 * d);
    c = (r[5] + r[7]) / (4 * d);
  }
  if (a < 0) return {-b, -c, -d};
  return {b, c, d};
}

constexpr int kSpaceUnits = 7;

/// The millimetres of a unit. No unit means mm, as in other programs.
double mm_of(int xyzt_units) {
  constexpr int kMetre = 1, kMicron = 3;
  const int unit = xyzt_units & kSpaceUnits;
  return unit == kMetre ? 1e3 : unit == kMicron ? 1e-3 : 1;
}

/// The affine of a qform. As in nibabel a distance of 0 is 1, and so is a factor other than -1.
std::array<double, 12> qform_of(const NiftiHeader& header) {
  std::array<double, 12> affine{};
  const auto& q = header.quaternion;
  const auto rotation = rotation_of(q[0], q[1], q[2]);
  for (std::size_t row = 0; row < 3; ++row) {
    for (std::size_t column = 0; column < 3; ++column) {
      const double flip = column == 2 && header.pixdim[0] == -1 ? -1 : 1;
      const double side = std::fabs(header.pixdim[column + 1]);
      affine[4 * row + column] = rotation[3 * row + column] * (side == 0 ? 1 : side) * flip;
    }
    affine[4 * row + 3] = q[3 + row];
  }
  return affine;
}

/// The affine of a file without forms, like nibabel: x runs to the left, and the middle of the
/// image is the world's origin.
std::array<double, 12> guessed_affine(const NiftiHeader& header,
                                      const std::array<double, 3>& sides) {
  std::array<double, 12> affine{};
  for (std::size_t i = 0; i < 3; ++i) {
    const double step = i == 0 ? -sides[i] : sides[i];
    affine[5 * i] = step;
    affine[4 * i + 3] = -step * static_cast<double>(header.dim[i + 1] - 1) / 2;
  }
  return affine;
}

/// Whether two affines are equal up to the rounding of float32.
bool are_alike(const std::array<double, 12>& a, const std::array<double, 12>& b) {
  double largest = 0, apart = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::fabs(a[i]));
    apart = std::max(apart, std::fabs(a[i] - b[i]));
  }
  return apart <= 1e-5 * largest;
}

/// Sets the quaternion and its spacing. Returns false where the affine is not rigid.
bool set_qform(const std::array<double, 12>& affine, NiftiHeader& header) {
  std::array<double, 3> sides{};
  for (std::size_t i = 0; i < 3; ++i) sides[i] = length(affine[i], affine[4 + i], affine[8 + i]);
  std::array<double, 9> r{};
  for (std::size_t i = 0; i < 9; ++i) r[i] = affine[i / 3 * 4 + i % 3] / sides[i % 3];
  for (std::size_t i = 0; i < 3; ++i) {
    const std::size_t j = (i + 1) % 3;
    if (!(std::fabs(r[i] * r[j] + r[3 + i] * r[3 + j] + r[6 + i] * r[6 + j]) < 1e-6)) return false;
  }
  const double determinant = r[0] * (r[4] * r[8] - r[5] * r[7]) -
                             r[1] * (r[3] * r[8] - r[5] * r[6]) +
                             r[2] * (r[3] * r[7] - r[4] * r[6]);
  if (determinant < 0) {
    header.pixdim[0] = -1;
    for (const std::size_t i : {2, 5, 8}) r[i] = -r[i];
  }
  for (std::size_t i = 0; i < 3; ++i) header.pixdim[i + 1] = sides[i];
  const std::array<double, 3> q = quaternion_of(r);
  header.quaternion = {q[0], q[1], q[2], affine[3], affine[7], affine[11]};
  return true;
}

}  // namespace

bool is_nifti(const std::string& head, const std::string& path) {
  for (const bool is_swapped : {false, true}) {
    const int32_t size = size_at_start(head, is_swapped);
    if (size == static_cast<int32_t>(kFirstSize) || size == static_cast<int32_t>(kSecondSize))
      return true;
  }
  // A compressed file is recognised by its name, as any file may be compressed.
  const bool is_gzip = head.compare(0, 2, "\x1f\x8b") == 0;
  return is_gzip && is_image_path(path);
}

NiftiHeader parse_nifti(const std::string& path, const std::string& head) {
  const auto fail = [&](const std::string& what) {
    throw DataError(path + ": " + what +
                    ", expected a NIfTI-1 or NIfTI-2 header; the file may be truncated or damaged");
  };
  NiftiHeader header;
  for (const bool is_swapped : {false, true}) {
    const int32_t size = size_at_start(head, is_swapped);
    if (size != static_cast<int32_t>(kFirstSize) && size != static_cast<int32_t>(kSecondSize))
      continue;
    header.is_swapped = is_swapped;
    header.is_second = size == static_cast<int32_t>(kSecondSize);
    if (head.size() < static_cast<std::size_t>(size)) fail("its header is cut off");
    HeaderFields fields(head, is_swapped);
    const std::string magic = head.substr(header.is_second ? 4 : 344, 4);
    header.is_pair = magic.compare(0, 2, "ni") == 0;
    if ((magic[0] != 'n') || (magic[1] != '+' && magic[1] != 'i') ||
        magic[2] != (header.is_second ? '2' : '1'))
      fail("its header says neither n+1 nor ni1 (Analyze 7.5?)");
    if (header.is_second) {
      header.datatype = fields.at(12).next<int16_t>();
      fields.at(16).next<int64_t>(header.dim);
      fields.at(104).next<double>(header.pixdim);
      header.pixels_at = fields.at(168).next<int64_t>();
      header.slope = fields.next<double>();
      header.offset = fields.next<double>();
      header.qform = fields.at(344).next<int32_t>();
      header.sform = fields.next<int32_t>();
      fields.next<double>(header.quaternion);
      fields.next<double>(header.rows);
      fields.next<int32_t>();
      header.xyzt_units = fields.at(500).next<int32_t>();
    } else {
      fields.at(40).next<int16_t>(header.dim);
      header.datatype = fields.at(70).next<int16_t>();
      fields.at(76).next<float>(header.pixdim);
      const auto at = static_cast<double>(fields.at(108).next<float>());
      if (!(at >= 0 && at < 1e9)) fail("it does not say where its pixels begin");
      header.pixels_at = static_cast<int64_t>(at);
      header.slope = static_cast<double>(fields.at(112).next<float>());
      header.offset = static_cast<double>(fields.next<float>());
      header.xyzt_units = fields.at(123).next<uint8_t>();
      header.qform = fields.at(252).next<int16_t>();
      header.sform = fields.next<int16_t>();
      fields.next<float>(header.quaternion);
      fields.next<float>(header.rows);
    }
    const int64_t least = header.is_pair ? 0 : header.is_second ? 544 : 352;
    if (header.pixels_at < 0) fail("it does not say where its pixels begin");
    header.pixels_at = std::max(header.pixels_at, least);
    if (header.dim[0] < 1 || header.dim[0] > 7)
      fail(fmt::format("it has {} dimensions", header.dim[0]));
    for (int64_t i = 1; i < 8; ++i) {
      int64_t& side = header.dim[static_cast<std::size_t>(i)];
      if (i > header.dim[0]) side = 1;
      if (side < 1 || side > INT32_MAX) fail(fmt::format("dimension {} has {} voxels", i, side));
      if (i > 5 && side > 1) fail(fmt::format("it has a dimension {}", i));
    }
    return header;
  }
  fail("no header");
  return header;
}

std::string format_nifti(const NiftiHeader& header) {
  std::string head(header.is_second ? kSecondSize + 4 : kFirstSize + 4, '\0');
  if (header.is_second) {
    put_field(head, 0, static_cast<int32_t>(kSecondSize));
    head.replace(4, 8, "n+2\0\r\n\x1a\n", 8);
    put_field(head, 12, header.datatype);
    put_field(head, 14, static_cast<int16_t>(8 * nifti_type("", header).type.size()));
    put_all<int64_t>(head, 16, header.dim);
    put_all<double>(head, 104, header.pixdim);
    put_field(head, 168, std::ssize(head));
    put_field(head, 176, header.slope);
    put_field(head, 344, static_cast<int32_t>(header.qform));
    put_field(head, 348, static_cast<int32_t>(header.sform));
    put_all<double>(head, 352, header.quaternion);
    put_all<double>(head, 400, header.rows);
    put_field(head, 500, static_cast<int32_t>(header.xyzt_units));
    return head;
  }
  put_field(head, 0, static_cast<int32_t>(kFirstSize));
  put_all<int16_t>(head, 40, header.dim);
  put_field(head, 70, header.datatype);
  put_field(head, 72, static_cast<int16_t>(8 * nifti_type("", header).type.size()));
  put_all<float>(head, 76, header.pixdim);
  put_field(head, 108, static_cast<float>(head.size()));
  put_field(head, 112, static_cast<float>(header.slope));
  put_field(head, 123, static_cast<uint8_t>(header.xyzt_units));
  put_field(head, 252, static_cast<int16_t>(header.qform));
  put_field(head, 254, static_cast<int16_t>(header.sform));
  put_all<float>(head, 256, header.quaternion);
  put_all<float>(head, 280, header.rows);
  head.replace(344, 4, "n+1\0", 4);
  return head;
}

NiftiType nifti_type(const std::string& path, const NiftiHeader& header) {
  for (const NiftiKind& kind : kNiftiKinds) {
    if (kind.code != header.datatype) continue;
    NiftiType type = kind.type;
    type.type.is_swapped = header.is_swapped && type.type.bits > 8;
    return type;
  }
  throw DataError(
      "{}: data type {}, expected integers of 8 to 64 bits, floating point of 32 or 64 bits, RGB "
      "or RGBA; convert it",
      path,
      header.datatype);
}

Geometry nifti_geometry(const NiftiHeader& header) {
  const double mm = mm_of(header.xyzt_units);
  Geometry geometry;
  const auto form_of = [](int code) { return code > 0 && code <= 5 ? code : 0; };  // as nibabel
  geometry.sform = form_of(header.sform);
  geometry.qform = form_of(header.qform);
  geometry.xyzt_units = header.xyzt_units;
  auto& affine = geometry.affine;
  if (geometry.qform > 0) affine = qform_of(header);
  if (geometry.sform > 0) {
    if (!are_alike(header.rows, affine)) geometry.qform_affine = affine;
    affine = header.rows;
  }
  std::array<double, 3> sides{};
  for (auto* const numbers : {&affine, &geometry.qform_affine})
    for (double& value : *numbers) value *= mm;
  bool is_affine = true;
  for (std::size_t i = 0; i < 3; ++i) {
    sides[i] = length(affine[i], affine[4 + i], affine[8 + i]);
    is_affine &= std::isfinite(sides[i]) && sides[i] > 0 && std::isfinite(affine[4 * i + 3]);
  }
  bool is_unset = (header.xyzt_units & kSpaceUnits) == 0;
  if (!is_affine) {
    affine = {};
    for (std::size_t i = 0; i < 3; ++i) {
      const double side = std::fabs(header.pixdim[i + 1]) * mm;
      sides[i] = std::isfinite(side) && static_cast<int64_t>(i) < header.dim[0] ? side : 0;
      is_unset = is_unset && (sides[i] == 1 || sides[i] == 0);
    }
    if (is_unset) sides = {};  // 1 without a unit is what programs write for an unknown spacing
    const bool is_spacing = std::ranges::all_of(sides, [](double v) { return v > 0; });
    if (is_spacing && geometry.sform == 0 && geometry.qform == 0)
      affine = guessed_affine(header, sides);
  }
  for (std::size_t i = 0; i < 3; ++i) geometry.spacing_um[2 - i] = sides[i] * 1000;
  return geometry;
}

void set_geometry(const Geometry& geometry, NiftiHeader& header) {
  const double unit = 1 / mm_of(geometry.xyzt_units);
  const auto in_unit = [unit](std::array<double, 12> affine) {
    for (double& value : affine) value *= unit;
    return affine;
  };
  const std::array<double, 12> affine = in_unit(geometry.affine);
  std::array<double, 3> sides{};
  bool is_known = geometry.has_affine();
  for (std::size_t i = 0; i < 3; ++i) {
    sides[i] = geometry.has_affine() ? length(affine[i], affine[4 + i], affine[8 + i])
                                     : geometry.spacing_um[2 - i] / 1000 * unit;
    is_known = is_known || sides[i] > 0;
  }
  header.pixdim = {1, 1, 1, 1, 1, 1, 1, 1};
  if (is_known) {
    header.xyzt_units = geometry.xyzt_units;
    for (std::size_t i = 0; i < 3; ++i) header.pixdim[i + 1] = sides[i];
  }
  if (!geometry.has_affine()) return;
  const bool is_guess = !geometry.is_placed();
  // Readers will guess the same.
  if (is_guess && are_alike(affine, guessed_affine(header, sides))) return;
  const bool is_other = geometry.qform_affine != std::array<double, 12>{};
  const int qform = is_guess ? 1 : geometry.qform;
  if (qform > 0 && set_qform(is_other ? in_unit(geometry.qform_affine) : affine, header))
    header.qform = qform;
  if (is_guess || geometry.sform > 0 || header.qform == 0) {
    header.sform = std::max(geometry.sform, 1);
    header.rows = affine;
  }
}

}  // namespace cytra::io
