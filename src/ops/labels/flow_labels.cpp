// FlowsToLabels: voxels follow the flow, and the places where many of them end are objects.
#include "ops/labels/flow_labels.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "base/error.h"
#include "ops/labels/operations.h"
#include "ops/labels/volume.h"

namespace cytra::ops {
namespace {

constexpr float kFlowScale = 5;             // of what networks learn
constexpr int64_t kPad = 20;                // around the histogram of ends
constexpr int32_t kSeed = 10, kMember = 2;  // voxels that end in one: more make a seed, a member

/// A flow, voxel by voxel, with a border of zeros: what is outside does not move.
template <int D>
struct Field {
  std::array<int64_t, D> size{}, first{}, image{};  // in the image, but for size
  std::array<int64_t, D> stride{};                  // in voxels of the bordered volume
  std::vector<std::array<float, D>> flow;
};

/// Where a voxel ends, in whole voxels. Positions run from -1 to 1 over the image, and are looked
/// up with an offset of half a voxel, both as in Cellpose. The arithmetic is in float32, so that
/// the ends are equal. Most voxels come to a place where they have been: whole rounds are left out.
template <int D>
std::array<int64_t, D> follow(const Field<D>& field,
                              const std::array<int64_t, D>& start,
                              int64_t niter) {
  std::array<float, D> at{};
  for (int d = 0; d < D; ++d) {
    at[d] = static_cast<float>(field.first[d] + start[d]) /
                static_cast<float>(std::max<int64_t>(field.image[d] - 1, 1)) * 2 -
            1;
  }
  std::array<float, D> before =
      at;  // after `since` steps, a power of two: a place that comes again
  int64_t since = 0;
  for (int64_t i = 1; i <= niter; ++i) {
    std::array<float, D> part{};
    int64_t corner = 0;
    bool is_outside = false;
    for (int d = 0; d < D; ++d) {
      const float half = static_cast<float>(field.image[d]) / 2;
      const float place = (at[d] + 1) * half - 0.5F, below = std::floor(place);
      part[d] = place - below;
      const int64_t bordered = static_cast<int64_t>(below) - field.first[d] + 1;
      is_outside = is_outside || bordered < 0 || bordered > field.size[d];
      corner += bordered * field.stride[d];
    }
    if (is_outside) break;
    std::array<float, D> move{};
    for (int c = 0; c < 1 << D; ++c) {
      float weight = 1;
      int64_t voxel = corner;
      for (int d = 0; d < D; ++d) {
        const bool is_above = (c >> d & 1) != 0;
        weight *= is_above ? part[d] : 1 - part[d];
        if (is_above) voxel += field.stride[d];
      }
      const std::array<float, D>& flow = field.flow[static_cast<std::size_t>(voxel)];
      for (int d = 0; d < D; ++d) move[d] += weight * flow[d];
    }
    bool is_at_rest = true;
    for (int d = 0; d < D; ++d) {
      is_at_rest = is_at_rest && move[d] == 0;
      at[d] = std::min(std::max(at[d] + move[d], -1.0F), 1.0F);
    }
    if (is_at_rest) break;
    if (at == before) {
      niter -= (niter - i) / (i - since) * (i - since);
    } else if (std::has_single_bit(static_cast<uint64_t>(i))) {
      before = at;
      since = i;
    }
  }
  std::array<int64_t, D> end{};
  for (int d = 0; d < D; ++d)
    end[d] = std::clamp<int64_t>(
        static_cast<int64_t>((at[d] + 1) * 0.5F *
                             static_cast<float>(std::max<int64_t>(field.image[d] - 1, 1))) -
            field.first[d],
        0,
        field.size[d] - 1);
  return end;
}

/// The voxels of the foreground, and the place in the histogram where each ends.
struct Ends {
  std::vector<int64_t> voxels, places;
  std::array<int64_t, 3> size{1, 1, 1};  // of the histogram
  int64_t count() const { return size[0] * size[1] * size[2]; }
};

template <int D>
Ends ends_of(const at::Tensor& output, const Part& part, double threshold, int64_t niter) {
  Field<D> field;
  Ends ends;
  int64_t image = 1, bordered = 1;
  for (int d = D - 1; d >= 0; --d) {
    field.size[d] = output.size(d + 1);
    field.first[d] = part.first[3 - D + d];
    field.image[d] = part.image[3 - D + d];
    field.stride[d] = bordered;
    ends.size[3 - D + d] = field.size[d] + 2 * kPad;
    image *= field.size[d];
    bordered *= field.size[d] + 2;
  }
  field.flow.assign(static_cast<std::size_t>(bordered), {});
  const auto place_of = [&](int64_t voxel) {
    std::array<int64_t, D> place{};
    for (int d = D - 1; d >= 0; --d) {
      place[d] = voxel % field.size[d];
      voxel /= field.size[d];
    }
    return place;
  };
  const float* const data = output.const_data_ptr<float>();
  for (int64_t v = 0; v < image; ++v) {
    if (!(data[D * image + v] > threshold)) continue;
    ends.voxels.push_back(v);
    int64_t to = 0;
    const auto place = place_of(v);
    for (int d = 0; d < D; ++d) to += (place[d] + 1) * field.stride[d];
    for (int d = 0; d < D; ++d) {
      const float side = static_cast<float>(std::max<int64_t>(field.image[d] - 1, 1));
      const float flow = data[d * image + v];  // what is not finite moves nothing
      if (std::isfinite(flow))
        field.flow[static_cast<std::size_t>(to)][d] = flow / kFlowScale * (2 / side);
    }
  }
  ends.places.resize(ends.voxels.size());
  at::parallel_for(0, std::ssize(ends.voxels), 256, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto last = follow<D>(field, place_of(ends.voxels[static_cast<std::size_t>(i)]), niter);
      int64_t to = 0;
      for (int d = 0; d < D; ++d) to = to * ends.size[3 - D + d] + last[d] + kPad;
      ends.places[static_cast<std::size_t>(i)] = to;
    }
  });
  return ends;
}

/// Numbers for the places where many voxels end: a peak among the 5 voxels around, and what is
/// reached from it within 5 steps over places where some end. A place that two peaks reach belongs
/// to the higher peak.
std::vector<int32_t> peaks_of(const Ends& ends, int64_t dims) {
  std::vector<int32_t> histogram(static_cast<std::size_t>(ends.count()), 0);
  for (const int64_t place : ends.places) ++histogram[static_cast<std::size_t>(place)];
  const auto at = [&](int64_t place) { return histogram[static_cast<std::size_t>(place)]; };
  std::vector<int64_t> around, near{0};
  const int64_t height = ends.size[1], width = ends.size[2];
  for (const auto& [z, y, x] : neighbours(dims)) {
    if (dims == 3 || z == 0) near.push_back((z * height + y) * width + x);
  }
  for (const int64_t a : near) {
    for (const int64_t b : near) around.push_back(a + b);  // 5 a side
  }
  std::vector<int64_t> seeds;
  for (const int64_t place : ends.places) {
    const int32_t here = at(place);
    if (here > kSeed &&
        std::ranges::all_of(around, [&](int64_t step) { return at(place + step) <= here; }))
      seeds.push_back(place);
  }
  std::ranges::sort(seeds);
  seeds.erase(std::unique(seeds.begin(), seeds.end()), seeds.end());
  std::ranges::stable_sort(seeds, [&](int64_t a, int64_t b) { return at(a) < at(b); });

  std::vector<int32_t> numbers(histogram.size(), 0);
  int32_t number = 0;
  for (const int64_t seed : seeds) {
    ++number;
    std::vector<int64_t> front{seed}, next;
    numbers[static_cast<std::size_t>(seed)] = number;
    for (int step = 0; step < 5; ++step, front.swap(next)) {
      next.clear();
      for (const int64_t place : front) {
        for (const int64_t to : near) {
          int32_t& taken = numbers[static_cast<std::size_t>(place + to)];
          if (taken == number || at(place + to) <= kMember) continue;
          taken = number;
          next.push_back(place + to);
        }
      }
    }
  }
  return numbers;
}

std::vector<int64_t> sizes_of(const at::Tensor& labels) {
  const at::Tensor counts = at::bincount(labels.reshape(-1));
  const int64_t* const data = counts.const_data_ptr<int64_t>();
  return {data, data + counts.numel()};
}

/// Drops the labels that `is_bad`, and numbers the others by their first voxels.
void keep_good(at::Tensor& labels, std::size_t count, const auto& is_bad) {
  std::vector<int32_t> numbers(count, 0);
  int32_t number = 0;
  int32_t* const data = labels.mutable_data_ptr<int32_t>();
  for (int64_t v = 0; v < labels.numel(); ++v) {
    const auto label = static_cast<std::size_t>(data[v]);
    if (label == 0) continue;
    if (numbers[label] == 0) numbers[label] = is_bad(label) ? -1 : ++number;
    data[v] = std::max(numbers[label], 0);
  }
}

/// The mean square, for each label, of the difference between the flows of its shape and the
/// predicted ones.
std::vector<double> flow_errors(const at::Tensor& labels, const at::Tensor& flows) {
  const at::Tensor error = (masks_to_flows(labels) - flows / kFlowScale).square_().sum(0);
  const at::Tensor sums = at::bincount(labels.reshape(-1), error.reshape(-1).to(at::kDouble));
  const std::vector<int64_t> sizes = sizes_of(labels);
  std::vector<double> errors;
  for (std::size_t label = 0; label < sizes.size(); ++label)
    errors.push_back(sums.const_data_ptr<double>()[label] /
                     static_cast<double>(std::max<int64_t>(sizes[label], 1)));
  return errors;
}

}  // namespace

at::Tensor FlowsToLabels::operator()(const at::Tensor& output, const Part& part) const {
  const int64_t dims = output.dim() - 1;
  if ((dims != 2 && dims != 3) || output.size(0) != dims + 1) {
    throw DataError(
        "{} channels in {} dimensions, expected {}: a flow along each and the objects' logit",
        output.size(0),
        dims,
        dims + 1);
  }
  const at::Tensor values = output.to(at::kCPU, at::kFloat).contiguous();
  at::Tensor labels = at::zeros(output.sizes().slice(1), at::kInt);
  const Ends ends = dims == 3 ? ends_of<3>(values, part, cellprob_threshold, niter)
                              : ends_of<2>(values, part, cellprob_threshold, niter);
  const std::vector<int32_t> numbers = peaks_of(ends, dims);
  int32_t* const data = labels.mutable_data_ptr<int32_t>();
  for (std::size_t i = 0; i < ends.voxels.size(); ++i)
    data[ends.voxels[i]] = numbers[static_cast<std::size_t>(ends.places[i])];

  std::vector<int64_t> sizes = sizes_of(labels);
  const auto image = static_cast<double>(part.image[0] * part.image[1] * part.image[2]);
  const double most = max_size_fraction * image;
  keep_good(
      labels, sizes.size(), [&](std::size_t l) { return static_cast<double>(sizes[l]) > most; });
  if (dims == 2 && flow_threshold > 0) {
    const std::vector<double> errors = flow_errors(labels, values.narrow(0, 0, dims));
    keep_good(labels, errors.size(), [&](std::size_t l) { return errors[l] > flow_threshold; });
  }
  const auto drop_small = [&] {
    sizes = sizes_of(labels);
    keep_good(labels, sizes.size(), [&](std::size_t l) { return sizes[l] < min_size; });
  };
  drop_small();
  FillHoles fill;
  fill.connectivity = 1;
  labels = fill(labels.unsqueeze(0))[0];
  drop_small();
  return labels;
}

}  // namespace cytra::ops
