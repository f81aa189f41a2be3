// Part of ops/labels/flow_labels.h: diffusion inside each object, then its gradient.
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include <ATen/ATen.h>

#include "ops/boxes/label_boxes.h"
#include "ops/labels/flow_labels.h"
#include "ops/labels/volume.h"

namespace cytra::ops {
namespace {

/// A volume with a border of one voxel around (2D: within the plane), in double: heat falls by a
/// ninth for each voxel, below what a float holds.
struct Bordered {
  Bordered(const std::array<int64_t, 3>& size, int64_t dims)
      : depth(size[0] + (dims == 3 ? 2 : 0)), height(size[1] + 2), width(size[2] + 2) {
    heat.assign(static_cast<std::size_t>(depth * height * width), 0);
  }
  int64_t depth, height, width;
  std::vector<double> heat;
};

/// Offsets to the voxels that a voxel exchanges heat with, itself first: the 3x3 around it, in 3D
/// its faces.
std::vector<int64_t> exchange(const Bordered& volume, int64_t dims) {
  std::vector<int64_t> steps{0};
  for (const auto& [z, y, x] : neighbours(dims == 3 ? 1 : 2)) {
    if (dims == 3 || z == 0) steps.push_back((z * volume.height + y) * volume.width + x);
  }
  return steps;
}

/// The voxel of the object nearest to its mean; in 2D the mean is rounded first, as Cellpose does.
/// Relative to the box.
std::array<int64_t, 3> centre_of(const std::vector<std::array<int64_t, 3>>& voxels, int64_t dims) {
  std::array<double, 3> mean{};
  for (std::size_t d = 0; d < 3; ++d) {
    for (const auto& voxel : voxels) mean[d] += static_cast<double>(voxel[d]);
    mean[d] /= static_cast<double>(voxels.size());
    if (dims == 2) mean[d] = std::nearbyint(mean[d]);
  }
  const auto distance = [&](const std::array<int64_t, 3>& voxel) {
    double sum = 0;
    for (std::size_t d = 0; d < 3; ++d) {
      const double difference = static_cast<double>(voxel[d]) - mean[d];
      sum += difference * difference;
    }
    return sum;
  };
  return *std::ranges::min_element(voxels, {}, distance);
}

/// `count` steps of diffusion from the centre within one object, whose voxels of the box have
/// `share`, 1 / exchange, and others 0.
void diffuse(Bordered& box,
             const std::vector<double>& share,
             int64_t centre,
             int64_t count,
             const std::vector<int64_t>& steps) {
  std::vector<double> next(box.heat.size(), 0);
  const int64_t first = *std::ranges::max_element(steps);
  const int64_t last = std::ssize(box.heat) - first;
  for (int64_t i = 0; i < count; ++i) {
    box.heat[static_cast<std::size_t>(centre)] += 1;
    std::ranges::fill(next, 0);
    for (const int64_t step : steps) {
      const double* const from = box.heat.data() + step;
      for (int64_t v = first; v < last; ++v) next[static_cast<std::size_t>(v)] += from[v];
    }
    for (int64_t v = first; v < last; ++v)
      next[static_cast<std::size_t>(v)] *= share[static_cast<std::size_t>(v)];
    std::swap(box.heat, next);
  }
}

}  // namespace

at::Tensor masks_to_flows(const at::Tensor& labels) {
  const int64_t dims = labels.dim(), border = dims == 3 ? 1 : 0;
  const at::Tensor volume = as_volume(labels, at::kInt);
  const std::array<int64_t, 3> size{volume.size(0), volume.size(1), volume.size(2)};
  const auto objects = boxes_of<int32_t>(volume);
  int64_t count = 0;  // of all: the largest needs so many
  for (const auto& [label, box] : objects) {
    const int64_t extent = box.size(1) + box.size(2);
    count = std::max(count, dims == 3 ? 6 * (box.size(0) + extent + 3) : 2 * (extent + 2));
  }

  const int32_t* const values = volume.const_data_ptr<int32_t>();
  Bordered image(size, dims);
  for (const auto& object : objects) {
    const auto& [label, box] = object;
    Bordered local({box.size(0), box.size(1), box.size(2)}, dims);
    const std::vector<int64_t> steps = exchange(local, dims);
    std::vector<double> share(local.heat.size(), 0);
    std::vector<std::array<int64_t, 3>> voxels;
    const auto place = [border](const Bordered& in, int64_t z, int64_t y, int64_t x) {
      return static_cast<std::size_t>(((z + border) * in.height + y + 1) * in.width + x + 1);
    };
    for (int64_t z = 0; z < box.size(0); ++z) {
      for (int64_t y = 0; y < box.size(1); ++y) {
        const int32_t* const row =
            values + ((z + box.first[0]) * size[1] + y + box.first[1]) * size[2] + box.first[2];
        for (int64_t x = 0; x < box.size(2); ++x) {
          if (row[x] != label) continue;
          share[place(local, z, y, x)] = 1.0 / static_cast<double>(steps.size());
          voxels.push_back({z, y, x});
        }
      }
    }
    const auto [z, y, x] = centre_of(voxels, dims);
    diffuse(local, share, static_cast<int64_t>(place(local, z, y, x)), count, steps);
    for (const auto& v : voxels) {
      image.heat[place(image, v[0] + box.first[0], v[1] + box.first[1], v[2] + box.first[2])] =
          local.heat[place(local, v[0], v[1], v[2])];
    }
  }

  at::Tensor flows = at::zeros({dims, size[0], size[1], size[2]}, at::kFloat);
  float* const out = flows.mutable_data_ptr<float>();
  const int64_t strides[] = {image.height * image.width, image.width, 1};
  for (int64_t z = 0, v = 0; z < size[0]; ++z) {
    for (int64_t y = 0; y < size[1]; ++y) {
      const double* heat =
          image.heat.data() + ((z + border) * image.height + y + 1) * image.width + 1;
      for (int64_t x = 0; x < size[2]; ++x, ++v, ++heat) {
        if (values[v] == 0) continue;
        std::array<double, 3> slope{};
        double square = 0;
        for (int64_t d = 0; d < dims; ++d) {
          const int64_t step = strides[3 - dims + d];
          double& along = slope[static_cast<std::size_t>(d)];
          along = heat[step] - heat[-step];
          square += along * along;
        }
        const double norm = 1e-60 + std::sqrt(square);
        for (int64_t d = 0; d < dims; ++d)
          out[d * volume.numel() + v] =
              static_cast<float>(slope[static_cast<std::size_t>(d)] / norm);
      }
    }
  }
  return dims == 3 ? flows : flows.squeeze(1);
}

}  // namespace cytra::ops
