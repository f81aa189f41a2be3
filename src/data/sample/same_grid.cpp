#include "data/sample/same_grid.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "data/field_of_view.h"
#include "data/sample/turn.h"
#include "data/sample/voxel_axes.h"
#include "data/sample/voxel_frame.h"
#include "io/reader.h"

namespace cytra::data {
namespace {

using GridKind = GridRelation::Kind;
using Vector3 = std::array<double, 3>;  // z, y, x
using Matrix3 = std::array<Vector3, 3>;

/// The allowed distance of voxels, in voxels: more than files lose by rounding, less than is
/// visible in a label.
constexpr double kTolerance = 0.1;
/// The allowed difference of spacings where nothing else is known, as programs round them.
constexpr double kSpacingTolerance = 0.01;

Vector3 sides_of(const std::vector<int64_t>& size) {
  Vector3 sides{1, 1, 1};
  for (std::size_t d = 0; d < size.size(); ++d)
    sides[3 - size.size() + d] = static_cast<double>(size[d]);
  return sides;
}

/// The axes in the world, as columns in the order z, y, x.
Matrix3 axes_in_world(const io::Geometry& geometry) {
  Matrix3 axes{};
  for (std::size_t row = 0; row < 3; ++row) {
    for (std::size_t d = 0; d < 3; ++d) axes[row][d] = geometry.affine[4 * row + 2 - d];
  }
  return axes;
}

double determinant(const Matrix3& m) {
  return m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1]) -
         m[0][1] * (m[1][0] * m[2][2] - m[1][2] * m[2][0]) +
         m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0]);
}

Vector3 solve(const Matrix3& m, const Vector3& right) {
  Vector3 result{};
  for (std::size_t column = 0; column < 3; ++column) {
    Matrix3 replaced = m;
    for (std::size_t row = 0; row < 3; ++row) replaced[row][column] = right[row];
    result[column] = determinant(replaced) / determinant(m);
  }
  return result;
}

std::string size_text(const std::vector<int64_t>& size) {
  return fmt::format("{}", fmt::join(size, "x"));
}

/// The spacing as text, in mm, or in um where that is shorter.
std::string spacing_text(const io::Geometry& geometry, std::size_t dims) {
  std::vector<double> um(geometry.spacing_um.end() - static_cast<std::ptrdiff_t>(dims),
                         geometry.spacing_um.end());
  const bool is_small = *std::ranges::min_element(um) < 50;
  for (double& value : um) value /= is_small ? 1 : 1000;
  return fmt::format("{:.5g} {}", fmt::join(um, " x "), is_small ? "um" : "mm");
}

std::string affine_text(const io::Geometry& geometry) {
  if (!geometry.has_affine()) return "none";
  const auto& a = geometry.affine;
  std::vector<std::string> rows;
  for (auto row = a.begin(); row != a.end(); row += 4)
    rows.push_back(fmt::format("[{:.6g}]", fmt::join(row, row + 4, ", ")));
  return fmt::format("[{}]", fmt::join(rows, ", "));
}

/// The map of voxels: the image's voxel is axes @ the other's voxel + origin; (z,y,x).
struct VoxelMap {
  Matrix3 axes{};
  Vector3 origin{};
};
VoxelMap map_between(const io::Geometry& geometry, const io::Geometry& image) {
  const Matrix3 own = axes_in_world(geometry), to = axes_in_world(image);
  VoxelMap map;
  Vector3 shift{};
  for (std::size_t column = 0; column < 3; ++column) {
    const Vector3 step = solve(to, {own[0][column], own[1][column], own[2][column]});
    for (std::size_t row = 0; row < 3; ++row) map.axes[row][column] = step[row];
    shift[column] = geometry.affine[4 * column + 3] - image.affine[4 * column + 3];
  }
  map.origin = solve(to, shift);
  return map;
}

/// The axis of the other image that is most parallel to each axis of the image. An axis of one
/// voxel has no direction: it gets the axis that is left.
std::array<std::size_t, 3> match_axes(const VoxelMap& map, const Vector3& sides) {
  constexpr std::size_t kFree = 3;
  std::array<std::size_t, 3> from{kFree, kFree, kFree};
  for (const bool is_flat : {false, true}) {
    for (std::size_t axis = 0; axis < 3; ++axis) {
      if ((sides[axis] == 1) != is_flat) continue;
      std::size_t best = kFree;
      for (std::size_t i = 0; i < 3; ++i) {
        if (from[i] != kFree) continue;
        const bool is_better =
            best == kFree ||
            (is_flat ? i == axis : std::abs(map.axes[i][axis]) > std::abs(map.axes[best][axis]));
        if (is_better) best = i;
      }
      from[best] = axis;
    }
  }
  return from;
}

/// The largest distance, in voxels, anywhere in the image, between the map and the exact turn
/// given by `from` and `is_mirrored`.
double farthest(const VoxelMap& map,
                const std::array<std::size_t, 3>& from,
                const std::array<bool, 3>& is_mirrored,
                const Vector3& sides) {
  double most = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    double low = map.origin[i] - (is_mirrored[i] ? sides[from[i]] - 1 : 0), high = low;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const double exact = axis != from[i] ? 0 : is_mirrored[i] ? -1 : 1;
      const double reach = (map.axes[i][axis] - exact) * (sides[axis] - 1);
      (reach < 0 ? low : high) += reach;
    }
    most = std::max({most, std::abs(low), std::abs(high)});
  }
  return most;
}

/// Why two grids of one size differ; the simplest reason comes first.
std::string reason_of(const io::Geometry& geometry,
                      const io::Geometry& image,
                      const std::array<std::size_t, 3>& from,
                      const Vector3& sides,
                      double apart,
                      std::size_t dims) {
  double tilt = 0;
  bool is_spaced = true;
  const Matrix3 own = axes_in_world(geometry), to = axes_in_world(image);
  for (std::size_t i = 0; i < 3; ++i) {
    if (sides[from[i]] == 1) continue;
    const double here = geometry.spacing_um[from[i]], there = image.spacing_um[i];
    is_spaced = is_spaced && std::abs(here / there - 1) * (sides[from[i]] - 1) <= kTolerance;
    double along = 0;
    for (std::size_t row = 0; row < 3; ++row) along += own[row][from[i]] * to[row][i];
    tilt = std::max(tilt, std::acos(std::min(1.0, std::abs(along) * 1e6 / (here * there))));
  }
  if (!is_spaced) {
    return fmt::format(
        "voxels of {}, expected {}", spacing_text(geometry, dims), spacing_text(image, dims));
  }
  constexpr double kDegrees = 57.29577951308232;
  const double longest = *std::ranges::max_element(sides);
  if (tilt * longest > kTolerance)
    return fmt::format("its axes are tilted by {:.3g} degrees against the image's",
                       tilt * kDegrees);
  return fmt::format("it lies {:.3g} voxels beside the image", apart);
}

GridRelation other(std::string difference) {
  GridRelation relation;
  relation.kind = GridKind::other;
  relation.difference = std::move(difference);
  return relation;
}

/// The relation where one image has no affine: what both files tell must agree.
GridRelation without_affine(const io::Geometry& geometry,
                            const std::vector<int64_t>& size,
                            const io::Geometry& image,
                            const std::vector<int64_t>& image_size) {
  if (size != image_size)
    return other(fmt::format("{} voxels, expected {}", size_text(size), size_text(image_size)));
  for (std::size_t d = 3 - size.size(); d < 3; ++d) {
    const double here = geometry.spacing_um[d], there = image.spacing_um[d];
    if (here <= 0 || there <= 0) continue;
    if (std::abs(here / there - 1) > kSpacingTolerance) {
      return other(fmt::format("voxels of {}, expected {}",
                               spacing_text(geometry, size.size()),
                               spacing_text(image, size.size())));
    }
  }
  return {};
}

void turn_onto(Sample& sample, const std::string& key, const spatial::Turn& turn) {
  at::Tensor& tensor = sample.stored(key);
  spatial::move_voxels(sample.geometries[key], spatial::matrix_of(turn, tensor.sizes().slice(1)));
  tensor = spatial::turned(tensor, turn);
}

/// The image as in the file, where there is one, since transforms may have moved both images.
io::ImageInfo on_file(const Sample& sample, const std::string& key) {
  const auto source = sample.sources.find(key);
  try {
    if (source != sample.sources.end())
      return io::open_image(source->second.path, source->second.selection)->info();
  } catch (const Error&) {  // what is known of it remains
  }
  io::ImageInfo info;
  info.geometry = sample.geometries.at(key);
  return info;
}

/// Turns the image, or resamples it when the sample asks for it; otherwise the result is `other`.
GridRelation brought_together(Sample& sample, const std::string& key, const std::string& image) {
  const std::vector<int64_t> size = sample.size(key), wanted = sample.size(image);
  io::Geometry& geometry = sample.geometries[key];
  const io::Geometry& target = sample.geometries[image];
  if (size.size() != wanted.size()) return {};
  if (sample.on_mismatch == Mismatch::ignore) {
    if (size == wanted) geometry = target;
    return {};
  }
  GridRelation relation = compare_grids(geometry, size, target, wanted);
  if (relation.kind == GridKind::turned) turn_onto(sample, key, {relation.from, relation.mirrored});
  if (relation.kind == GridKind::unknown && size == wanted) geometry = target;
  if (relation.kind == GridKind::other && sample.on_mismatch == Mismatch::resample) {
    at::Tensor& tensor = sample.at(key);
    try {
      tensor = spatial::resample_onto(tensor, geometry, target, wanted, "nearest", "zeros", false);
    } catch (const DataError& error) {
      throw DataError("{}: '{}' can't be resampled to '{}' ({}): {}",
                      sample.file_of(key),
                      key,
                      image,
                      sample.file_of(image),
                      error.what());
    }
    geometry = target;
    relation.kind = GridKind::same;
  }
  return relation;
}

}  // namespace

GridRelation compare_grids(const io::Geometry& geometry,
                           const std::vector<int64_t>& size,
                           const io::Geometry& image,
                           const std::vector<int64_t>& image_size) {
  const auto is_solid = [](const io::Geometry& one) {
    const Matrix3 axes = axes_in_world(one);
    const double volume = one.spacing_um[0] * one.spacing_um[1] * one.spacing_um[2];
    return std::abs(determinant(axes)) * 1e9 > 1e-6 * volume;
  };
  if (has_field(geometry) && has_field(image)) {
    GridRelation relation = compare_grids(in_field(geometry), size, in_field(image), image_size);
    if (relation.kind == GridKind::other) relation.difference = "it was loaded in another size";
    return relation;
  }
  if (!geometry.is_placed() || !image.is_placed() || !is_solid(geometry) || !is_solid(image))
    return without_affine(geometry, size, image, image_size);
  const VoxelMap map = map_between(geometry, image);
  const Vector3 sides = sides_of(size), wanted = sides_of(image_size);
  const std::array<std::size_t, 3> from = match_axes(map, sides);
  std::array<bool, 3> is_mirrored{};
  bool is_identity = true;
  for (std::size_t i = 0; i < 3; ++i) {
    if (sides[from[i]] != wanted[i])
      return other(fmt::format("{} voxels, expected {}", size_text(size), size_text(image_size)));
    is_mirrored[i] = sides[from[i]] > 1 && map.axes[i][from[i]] < 0;
    is_identity = is_identity && from[i] == i && !is_mirrored[i];
  }
  const double apart = farthest(map, from, is_mirrored, sides);
  if (!(apart <= kTolerance))
    return other(reason_of(geometry, image, from, sides, apart, size.size()));
  GridRelation relation;
  relation.kind = is_identity ? GridKind::same : GridKind::turned;
  const std::size_t skipped = 3 - size.size();  // of a plane, Z
  for (std::size_t i = skipped; i < 3; ++i) {
    relation.from.push_back(static_cast<int64_t>(from[i] - skipped));
    relation.mirrored.push_back(is_mirrored[i]);
  }
  return relation;
}

void settle_grids(Sample& sample) {
  if (!sample.has(sample.image)) return;
  std::vector<std::string> keys;
  for (const auto& [key, tensor] : sample.tensors)
    if (tensor.dim() > 2) keys.push_back(key);
  for (const auto& [key, request] : sample.unread) keys.push_back(key);
  for (const std::string& key : keys) {
    if (key == sample.image) continue;
    const GridRelation relation = brought_together(sample, key, sample.image);
    io::Geometry &own = sample.geometries[key], &image = sample.geometries[sample.image];
    const bool are_placed = own.is_placed() && image.is_placed();
    const std::vector<int64_t> size = sample.size(key), wanted = sample.size(sample.image);
    if (relation.kind == GridKind::other && size != wanted && !are_placed && !has_field(own))
      share_field(own, size, image, wanted);
  }
}

void expect_same_grid(Sample& sample, const std::string& key, const std::string& image) {
  if (key == image || !sample.has(key) || !sample.has(image)) return;
  const GridRelation relation = brought_together(sample, key, image);
  const double spacing =
      std::min(sample.geometries[key].spacing_um[2], sample.geometries[image].spacing_um[2]);
  const bool is_callers = !(spacing > 0) && !has_field(sample.geometries[key]) &&
                          sample.size(key) != sample.size(image);
  if (relation.kind != GridKind::other || is_callers) return;
  const io::ImageInfo own = on_file(sample, key), wanted = on_file(sample, image);
  const auto space_of = [](const io::ImageInfo& info) {
    return std::vector<int64_t>(info.shape.begin() + (info.shape[1] == 1 ? 2 : 1),
                                info.shape.end());
  };
  const bool has_sizes = has_field(sample.geometries[key]) && space_of(own) != space_of(wanted);
  throw DataError(
      mismatch_text(key,
                    sample.file_of(key),
                    own.geometry,
                    image,
                    sample.file_of(image),
                    wanted.geometry,
                    has_sizes ? without_affine({}, space_of(own), {}, space_of(wanted)).difference
                              : relation.difference));
}

std::string orientation_of(const io::Geometry& geometry) {
  if (!geometry.is_placed()) return "";
  const auto axes = spatial::world_axes(geometry);  // of z, y, x
  std::string codes;
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis)
    codes += (axis->second ? "LPI" : "RAS")[axis->first];
  return codes;
}

std::string mismatch_text(const std::string& key,
                          const std::string& path,
                          const io::Geometry& geometry,
                          const std::string& image,
                          const std::string& image_path,
                          const io::Geometry& image_geometry,
                          const std::string& difference) {
  if (!geometry.has_affine() && !image_geometry.has_affine() &&
      (geometry.spacing_um[2] <= 0 || image_geometry.spacing_um[2] <= 0)) {
    return fmt::format(
        "{}: '{}' has another size than '{}' ({}): {}; draw or export it in the size of its image; "
        "where both show the same, Resized of both after LoadImaged, with mode: [area, nearest], "
        "gives them one size",
        path,
        key,
        image,
        image_path,
        difference);
  }
  return fmt::format(
      "{}: '{}' does not lie on '{}' ({}): {}; its affine is {}, that of '{}' {}. To resample it: "
      "data.on_mismatch=resample, or after LoadImaged in each list of data.transforms: "
      "{{_target_: ResampleToMatchd, keys: [{}], key_dst: {}, mode: nearest, padding_mode: "
      "zeros}}; "
      "where a file is wrong about its place, and voxel lies on voxel: data.on_mismatch=ignore",
      path,
      key,
      image,
      image_path,
      difference,
      affine_text(geometry),
      image,
      affine_text(image_geometry),
      key,
      image);
}

}  // namespace cytra::data
