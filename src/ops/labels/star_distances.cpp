// Part of ops/labels/star_labels.h: rays, distances along them, and the depth in the object.
#include <algorithm>
#include <cmath>
#include <stdexcept>

#include <ATen/ATen.h>

#include "ops/boxes/label_boxes.h"
#include "ops/labels/distance.h"
#include "ops/labels/star_labels.h"
#include "ops/labels/volume.h"

namespace cytra::ops {
namespace {

using Point = std::array<double, 3>;

/// Triangles of the convex hull of points on a sphere: those with all points on one side.
std::vector<std::array<int32_t, 3>> hull_of(const std::vector<Point>& points) {
  std::vector<std::array<int32_t, 3>> faces;
  const auto count = static_cast<int32_t>(points.size());
  const auto point = [&](int32_t i) -> const Point& { return points[static_cast<std::size_t>(i)]; };
  for (int32_t a = 0; a < count; ++a) {
    for (int32_t b = a + 1; b < count; ++b) {
      for (int32_t c = b + 1; c < count; ++c) {
        Point u{}, v{};
        for (std::size_t d = 0; d < 3; ++d) {
          u[d] = point(b)[d] - point(a)[d];
          v[d] = point(c)[d] - point(a)[d];
        }
        const Point normal{
            u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]};
        bool has_above = false, has_below = false;
        for (int32_t p = 0; p < count && !(has_above && has_below); ++p) {
          if (p == a || p == b || p == c) continue;
          double height = 0;
          for (std::size_t d = 0; d < 3; ++d) height += normal[d] * (point(p)[d] - point(a)[d]);
          (height > 0 ? has_above : has_below) = true;
        }
        if (!has_above || !has_below) faces.push_back({a, b, c});
      }
    }
  }
  if (static_cast<int32_t>(faces.size()) != 2 * count - 4)
    throw std::logic_error("rays whose hull is not of triangles");
  return faces;
}

/// How far the object of a voxel reaches along a ray. In 2D up to the border between two voxels,
/// in 3D to the first voxel beyond it, in whole steps, as StarDist does.
float reach(const int32_t* values,
            const std::array<int64_t, 3>& size,
            const std::array<int64_t, 3>& from,
            const std::array<float, 3>& ray,
            bool is_plane) {
  const int32_t own = values[(from[0] * size[1] + from[1]) * size[2] + from[2]];
  std::array<float, 3> moved{};
  for (;;) {
    std::array<int64_t, 3> at{};
    bool is_outside = false;
    for (std::size_t d = 0; d < 3; ++d) {
      moved[d] += ray[d];
      at[d] = std::lrint(static_cast<float>(from[d]) + moved[d]);
      is_outside = is_outside || at[d] < 0 || at[d] >= size[d];
    }
    if (is_outside || values[(at[0] * size[1] + at[1]) * size[2] + at[2]] != own) break;
  }
  const float beyond = is_plane ? 1 - 0.5F / std::max(std::abs(ray[1]), std::abs(ray[2])) : 0;
  float square = 0;
  for (std::size_t d = 0; d < 3; ++d) {
    const float along =
        is_plane ? moved[d] - beyond * ray[d] : static_cast<float>(std::lrint(moved[d]));
    square += along * along;
  }
  return std::sqrt(square);
}

}  // namespace

Rays make_rays(int64_t count, int64_t dims, const std::vector<double>& anisotropy) {
  Rays rays;
  const double pi = std::acos(-1.0);
  if (dims == 2) {
    const auto angle = static_cast<float>(2 * pi) / static_cast<float>(count);
    for (int64_t k = 0; k < count; ++k) {
      const float phi = static_cast<float>(k) * angle;
      rays.directions.push_back({0, std::sin(phi), std::cos(phi)});
    }
    return rays;
  }
  std::vector<Point> points;
  for (int64_t k = 0; k < count; ++k) {
    const double z = -1 + 2 * static_cast<double>(k) / static_cast<double>(count - 1);
    const double radius = std::sqrt(std::max(0.0, 1 - z * z));
    const double phi = (3 - std::sqrt(5.0)) * pi * static_cast<double>(k);
    points.push_back({z, radius * std::sin(phi), radius * std::cos(phi)});
  }
  rays.faces = hull_of(points);  // stretching does not change which
  for (Point& point : points) {
    double square = 0;
    for (std::size_t d = 0; d < 3; ++d) {
      if (!anisotropy.empty()) point[d] /= anisotropy.at(d);
      square += point[d] * point[d];
    }
    std::array<float, 3> direction{};
    for (std::size_t d = 0; d < 3; ++d)
      direction[d] = static_cast<float>(point[d] / std::sqrt(square));
    rays.directions.push_back(direction);
  }
  return rays;
}

at::Tensor star_distances(const at::Tensor& labels,
                          const Rays& rays,
                          const std::vector<int64_t>& grid) {
  const at::Tensor volume = as_volume(labels, at::kInt);
  const std::array<int64_t, 3> size{volume.size(0), volume.size(1), volume.size(2)};
  const auto count = std::ssize(rays.directions);
  std::array<int64_t, 3> step{1, 1, 1}, places{};
  std::ranges::copy_backward(grid, step.end());
  for (std::size_t d = 0; d < 3; ++d) places[d] = (size[d] + step[d] - 1) / step[d];
  at::Tensor distances = at::zeros({count, places[0], places[1], places[2]}, at::kFloat);
  const int32_t* const values = volume.const_data_ptr<int32_t>();
  float* const out = distances.mutable_data_ptr<float>();
  for (int64_t k = 0; k < count; ++k) {
    const std::array<float, 3>& ray = rays.directions[static_cast<std::size_t>(k)];
    float* to = out + k * distances[0].numel();
    for (int64_t z = 0; z < size[0]; z += step[0]) {
      for (int64_t y = 0; y < size[1]; y += step[1]) {
        for (int64_t x = 0; x < size[2]; x += step[2], ++to) {
          if (values[(z * size[1] + y) * size[2] + x] != 0)
            *to = reach(values, size, {z, y, x}, ray, labels.dim() == 2);
        }
      }
    }
  }
  return labels.dim() == 3 ? distances : distances.squeeze(1);
}

at::Tensor edt_probability(const at::Tensor& labels, const std::vector<double>& anisotropy) {
  const at::Tensor volume = as_volume(labels, at::kInt);
  at::Tensor probability = at::zeros(volume.sizes(), at::kFloat);
  for (const auto& [label, box] : boxes_of<int32_t>(volume)) {
    Box grown = box;  // by what is around it, inside the image
    for (std::size_t d = 0; d < 3; ++d) {
      grown.first[d] = std::max<int64_t>(box.first[d] - 1, 0);
      grown.last[d] = std::min(box.last[d] + 1, volume.size(static_cast<int64_t>(d)) - 1);
    }
    at::Tensor mask = grown.part_of(volume).eq(label);
    // The border of an object that fills the image is taken to be outside of the image.
    const bool fills = mask.all().item<bool>();
    if (fills) mask = at::constant_pad_nd(mask, {1, 1, 1, 1, labels.dim() == 3, labels.dim() == 3});
    at::Tensor distance = labels.dim() == 3 ? distance_transform(mask, anisotropy)
                                            : distance_transform(mask[0], anisotropy).unsqueeze(0);
    if (fills) {
      for (int64_t d = labels.dim() == 3 ? 0 : 1; d < 3; ++d)
        distance = distance.narrow(d, 1, distance.size(d) - 2);
      mask = grown.part_of(volume).eq(label);
    }
    const float largest = distance.max().item<float>() + 1e-10F;
    grown.part_of(probability).add_(distance / largest);  // 0 outside of the object
  }
  return labels.dim() == 3 ? probability : probability[0];
}

}  // namespace cytra::ops
