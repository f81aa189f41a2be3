#include "ops/windows/sums.h"

#include <algorithm>
#include <list>
#include <mutex>
#include <stdexcept>

#include <ATen/ATen.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "device/backend.h"
#include "ops/windows/passes.h"

namespace cytra::ops {
namespace {

void expect_type(const Finish& finish) {
  const bool is_number = at::isFloatingType(finish.type);
  const bool is_share =
      finish.kind == Finish::Kind::sigmoid || finish.kind == Finish::Kind::softmax;
  if (is_number || finish.kind == Finish::Kind::argmax || finish.kind == Finish::Kind::threshold ||
      (is_share && finish.type == at::kByte))
    return;
  throw std::logic_error("finish: logits are of a floating type, probabilities of one or uint8");
}

const WindowPasses& passes_on(const at::Tensor& tensor) {
  return tensor.is_cpu() ? cpu_passes() : aten_passes();
}

/// Voxels that are projected at once: on a CPU what caches hold.
int64_t projected_at_once(const at::Tensor& sums) {
  return int64_t{1} << (sums.is_cpu() ? 13 : 18);
}

/// Finishes features (K,V) by the linear layer of `finish` -> out (K',V). `bad`: as finish_rows().
void finish_projected(const at::Tensor& features,
                      const at::Tensor& weights,
                      const Finish& finish,
                      const at::Tensor& out,
                      const at::Tensor& bad) {
  Finish then = finish;
  then.weight = then.bias = at::Tensor();
  const at::Tensor weight = finish.weight.to(features.device());
  const at::Tensor bias = finish.bias.to(features.device()).unsqueeze(1);
  const int64_t most = projected_at_once(features);
  for (int64_t begin = 0; begin < features.size(1); begin += most) {
    const int64_t count = std::min(most, features.size(1) - begin);
    at::Tensor some = features.narrow(1, begin, count);
    if (weights.defined()) some = some / weights.narrow(0, begin, count);
    const at::Tensor made = weight.matmul(some).add_(bias);
    // Sums that were finite have been counted, so this is what a product has lost.
    if (bad.defined()) bad.add_(made.sum().isfinite().logical_not());
    passes_on(made).finish_voxels(made, {}, then, out.narrow(1, begin, count));
  }
}

/// A map, and all that it is made of.
struct KeptMap {
  std::array<std::vector<float>, 3> lines;
  float floor;
  c10::Stream stream;  // memory of a map that is dropped is used again in this stream's order
  at::Tensor map;
};

}  // namespace

int64_t WindowGrid::windows() const {
  int64_t count = 1;
  for (const WindowAxis& axis : axes) count *= std::ssize(axis.starts);
  return count;
}

std::array<int64_t, 3> WindowGrid::place(int64_t w) const {
  std::array<int64_t, 3> place{};
  for (std::size_t d = 3; d-- > 0;) {
    const auto count = std::ssize(axes[d].starts);
    place[d] = w % count;
    w /= count;
  }
  return place;
}

std::array<int64_t, 2> WindowGrid::final_rows(int64_t i) const {
  const WindowAxis& axis = axes[0];
  const auto start = [&](int64_t at) {
    if (at == 0) return int64_t{0};
    if (at == std::ssize(axis.starts)) return axis.size;
    return std::clamp<int64_t>(
        axis.starts[static_cast<std::size_t>(at)] - axis.before, 0, axis.size);
  };
  return {start(i), start(i + 1)};
}

WindowBox box_of(const WindowGrid& grid, int64_t w) {
  WindowBox box{};
  const std::array<int64_t, 3> place = grid.place(w);
  for (std::size_t d = 0; d < 3; ++d) {
    const WindowAxis& axis = grid.axes[d];
    const auto end = [&](int64_t i) {
      return std::min(axis.starts[static_cast<std::size_t>(i)] - axis.before + axis.roi, axis.size);
    };
    const int64_t start = axis.starts[static_cast<std::size_t>(place[d])] - axis.before;
    box.from[d] = std::max<int64_t>(start, 0);
    box.to[d] = std::max(end(place[d]), box.from[d]);
    box.skip[d] = box.from[d] - start;
    box.fresh[d] =
        place[d] == 0 ? box.from[d] : std::clamp(end(place[d] - 1), box.from[d], box.to[d]);
  }
  return box;
}

at::Tensor window_map(const WindowGrid& grid) {
  if (grid.map.defined()) return grid.map;
  at::Tensor map = at::ones({});
  for (const WindowAxis& axis : grid.axes) map = map.unsqueeze(-1) * at::tensor(axis.weights);
  return map.clamp_min_(grid.floor);
}

at::Tensor window_map(const WindowGrid& grid, c10::Device device) {
  if (grid.map.defined()) return grid.map.to(device);
  constexpr std::size_t kMost = 4;
  static std::mutex mutex;
  static auto& kept = *new std::list<KeptMap>;  // the newest first; torch's devices end before us
  const auto& axes = grid.axes;
  const c10::Stream stream = c10::impl::VirtualGuardImpl(device.type()).getStream(device);
  const std::lock_guard lock(mutex);
  const auto found = std::ranges::find_if(kept, [&](const KeptMap& one) {
    for (std::size_t d = 0; d < 3; ++d) {
      if (one.lines[d] != axes[d].weights) return false;
    }
    return one.floor == grid.floor && one.stream == stream;
  });
  if (found != kept.end()) {
    kept.splice(kept.begin(), kept, found);
  } else {
    kept.push_front({{axes[0].weights, axes[1].weights, axes[2].weights},
                     grid.floor,
                     stream,
                     window_map(grid).to(device)});
    if (kept.size() > kMost) kept.pop_back();
  }
  return kept.front().map;
}

at::Tensor window_table(const WindowGrid& grid, c10::Device device) {
  std::vector<int64_t> numbers;
  for (const WindowAxis& axis : grid.axes)
    numbers.insert(numbers.end(), axis.starts.begin(), axis.starts.end());
  for (const WindowAxis& axis : grid.axes)
    numbers.insert(numbers.end(), axis.source.begin(), axis.source.end());
  const at::Tensor table =
      at::empty({std::ssize(numbers)},
                at::TensorOptions(at::kInt).pinned_memory(device::pins_memory(device)));
  std::ranges::transform(numbers, table.mutable_data_ptr<int32_t>(), [](int64_t i) {
    return static_cast<int32_t>(i);
  });
  return table.to(device, /*non_blocking=*/true);
}

void gather(const at::Tensor& image,
            const WindowGrid& grid,
            int64_t first,
            double pad_value,
            const at::Tensor& windows) {
  passes_on(image).gather(image, grid, first, pad_value, windows);
}

void accumulate(const at::Tensor& values,
                const WindowGrid& grid,
                int64_t first,
                const at::Tensor& sums) {
  passes_on(sums).accumulate(values, grid, first, sums);
}

void finish_rows(const at::Tensor& sums,
                 const WindowGrid& grid,
                 int64_t begin,
                 int64_t end,
                 const Finish& finish,
                 const at::Tensor& out,
                 const at::Tensor& bad) {
  expect_type(finish);
  if (!finish.weight.defined())
    return passes_on(sums).finish_rows(sums, grid, begin, end, finish, out, bad);
  const int64_t voxels = sums.size(2) * sums.size(3);
  const int64_t some = std::max<int64_t>(1, projected_at_once(sums) / voxels);
  for (int64_t row = begin; row < end; row += some) {
    const int64_t count = std::min(some, end - row);
    const at::Tensor mean =
        at::empty({sums.size(0), count, sums.size(2), sums.size(3)}, sums.options());
    passes_on(sums).finish_rows(sums, grid, row, row + count, {}, mean, bad);
    finish_projected(mean.view({sums.size(0), -1}),
                     {},
                     finish,
                     out.narrow(1, row - begin, count).view({out.size(0), -1}),
                     bad);
  }
}

at::Tensor finish(const at::Tensor& sums, const at::Tensor& weights, const Finish& finish) {
  expect_type(finish);
  std::vector<int64_t> shape = sums.sizes().vec();
  shape[1] = finish.channels(shape[1]);
  const at::Tensor out = at::empty(shape, sums.options().dtype(finish.type));
  if (sums.numel() == 0) return out;
  const at::Tensor from = sums.to(at::kFloat).flatten(2), to = out.flatten(2);
  at::Tensor line;
  if (weights.defined()) line = weights.to(at::kFloat).flatten().contiguous();
  for (int64_t n = 0; n < shape[0]; ++n) {
    if (finish.weight.defined())
      finish_projected(from[n], line, finish, to[n], {});
    else
      passes_on(sums).finish_voxels(from[n], line, finish, to[n]);
  }
  return out;
}

}  // namespace cytra::ops
