#include "ops/window_sums.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include <ATen/ATen.h>

#include "ops/window_sums_cpu.h"

namespace cytra::ops {
namespace {

int64_t ring_row(int64_t row, const at::Tensor& ring) {
  return row % ring.size(1);
}

/// Calls run(from, to, place) for each run of rows that lie side by side in a ring.
template <class Run>
void for_runs(int64_t begin, int64_t end, const at::Tensor& ring, Run run) {
  while (begin < end) {
    const int64_t place = ring_row(begin, ring);
    const int64_t count = std::min(end - begin, ring.size(1) - place);
    run(begin, begin + count, place);
    begin += count;
  }
}

void expect_type(const Finish& finish) {
  const bool is_number = at::isFloatingType(finish.type);
  const bool is_share =
      finish.kind == Finish::Kind::sigmoid || finish.kind == Finish::Kind::softmax;
  if (is_number || finish.kind == Finish::Kind::argmax || finish.kind == Finish::Kind::threshold ||
      (is_share && finish.type == at::kByte))
    return;
  throw std::logic_error("finish: logits are of a floating type, probabilities of one or uint8");
}

}  // namespace

int64_t WindowGrid::windows() const {
  int64_t count = 1;
  for (const WindowAxis& axis : axes) count *= static_cast<int64_t>(axis.starts.size());
  return count;
}

std::array<int64_t, 3> WindowGrid::place(int64_t w) const {
  std::array<int64_t, 3> place{};
  for (std::size_t d = 3; d-- > 0;) {
    const auto count = static_cast<int64_t>(axes[d].starts.size());
    place[d] = w % count;
    w /= count;
  }
  return place;
}

std::array<int64_t, 2> WindowGrid::final_rows(int64_t i) const {
  const WindowAxis& axis = axes[0];
  const auto start = [&](int64_t at) {
    if (at == 0) return int64_t{0};
    if (at == static_cast<int64_t>(axis.starts.size())) return axis.size;
    return std::clamp<int64_t>(
        axis.starts[static_cast<std::size_t>(at)] - axis.before, 0, axis.size);
  };
  return {start(i), start(i + 1)};
}

at::Tensor window_map(const WindowGrid& grid) {
  if (grid.map.defined()) return grid.map;
  at::Tensor map = at::ones({});
  for (const WindowAxis& axis : grid.axes) map = map.unsqueeze(-1) * at::tensor(axis.weights);
  return map.clamp_min_(grid.floor);
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

void gather(const at::Tensor& image,
            const WindowGrid& grid,
            int64_t w,
            double pad_value,
            const at::Tensor& window) {
  return image.is_cpu() ? cpu::gather(image, grid, w, pad_value, window)
                        : aten::gather(image, grid, w, pad_value, window);
}

void accumulate(const at::Tensor& values,
                const WindowGrid& grid,
                int64_t first,
                const at::Tensor& sums) {
  return sums.is_cpu() ? cpu::accumulate(values, grid, first, sums)
                       : aten::accumulate(values, grid, first, sums);
}

bool finish_rows(const at::Tensor& sums,
                 const WindowGrid& grid,
                 int64_t begin,
                 int64_t end,
                 const Finish& finish,
                 const at::Tensor& out) {
  expect_type(finish);
  return sums.is_cpu() ? cpu::finish_rows(sums, grid, begin, end, finish, out)
                       : aten::finish_rows(sums, grid, begin, end, finish, out);
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
    if (sums.is_cpu())
      cpu::finish_voxels(from[n].contiguous(), line, finish, to[n]);
    else
      aten::finish_voxels(from[n], line, finish, to[n]);
  }
  return out;
}

namespace aten {

void gather(const at::Tensor& image,
            const WindowGrid& grid,
            int64_t w,
            double pad_value,
            const at::Tensor& window) {
  const WindowBox box = box_of(grid, w);
  const std::array<int64_t, 3> place = grid.place(w);
  at::Tensor found = image;
  for (std::size_t d = 0; d < 3; ++d) {
    const WindowAxis& axis = grid.axes[d];
    const auto dim = static_cast<int64_t>(d) + 1;
    const int64_t start = axis.starts[static_cast<std::size_t>(place[d])];
    std::vector<int64_t> rows;
    bool padded = false;
    for (int64_t i = 0; i < axis.roi; ++i) {
      const int64_t row = axis.source[static_cast<std::size_t>(start + i)];
      padded = padded || row < 0;
      rows.push_back(std::max<int64_t>(row, 0) % image.size(dim));
    }
    const bool is_run = rows.back() - rows.front() == axis.roi - 1 && box.skip[d] == 0 &&
                        box.to[d] - box.from[d] == axis.roi;
    found = is_run ? found.narrow(dim, rows.front(), axis.roi)
                   : found.index_select(dim, at::tensor(rows, at::kLong).to(image.device()));
    if (!padded) continue;
    at::Tensor outside = at::empty({axis.roi}, at::kBool);
    for (int64_t i = 0; i < axis.roi; ++i)
      outside[i] = axis.source[static_cast<std::size_t>(start + i)] < 0;
    std::vector<int64_t> shape(4, 1);
    shape[d + 1] = axis.roi;
    found = found.to(at::kFloat).masked_fill(outside.to(image.device()).reshape(shape), pad_value);
  }
  window.copy_(found);
}

void accumulate(const at::Tensor& values,
                const WindowGrid& grid,
                int64_t first,
                const at::Tensor& sums) {
  for (int64_t s = 0; s < values.size(0); ++s) {
    const WindowBox box = box_of(grid, first + s);
    const auto &from = box.from, &to = box.to, &fresh = box.fresh;
    const at::Tensor weighted = values[s].to(at::kFloat) * grid.map;
    // What windows before cover: all of the rows in front of the fresh ones, and so on inwards.
    const auto put = [&](std::array<int64_t, 3> low, std::array<int64_t, 3> high, bool is_fresh) {
      for_runs(low[0], high[0], sums, [&](int64_t begin, int64_t end, int64_t place) {
        at::Tensor part = sums.narrow(1, place, end - begin);
        at::Tensor value = weighted.narrow(1, begin - from[0] + box.skip[0], end - begin);
        for (std::size_t d = 1; d < 3; ++d) {
          const auto dim = static_cast<int64_t>(d) + 1;
          if (high[d] <= low[d]) return;
          part = part.narrow(dim, low[d], high[d] - low[d]);
          value = value.narrow(dim, low[d] - from[d] + box.skip[d], high[d] - low[d]);
        }
        if (is_fresh)
          part.copy_(value);
        else
          part.add_(value);
      });
    };
    put(from, {fresh[0], to[1], to[2]}, false);
    put({fresh[0], from[1], from[2]}, {to[0], fresh[1], to[2]}, false);
    put({fresh[0], fresh[1], from[2]}, {to[0], to[1], fresh[2]}, false);
    put(fresh, to, true);
  }
}

bool finish_voxels(const at::Tensor& sums,
                   const at::Tensor& weights,
                   const Finish& finish,
                   const at::Tensor& out) {
  const at::Tensor logits = weights.defined() ? sums / weights : sums;
  at::Tensor value = logits;
  switch (finish.kind) {
    case Finish::Kind::logits:
      break;
    case Finish::Kind::sigmoid:
      value = logits.sigmoid();
      break;
    case Finish::Kind::softmax:
      value = logits.softmax(0);
      break;
    case Finish::Kind::argmax:
      value = logits.argmax(0, /*keepdim=*/true);
      break;
    case Finish::Kind::threshold:
      value = logits.gt(std::log(finish.threshold / (1 - finish.threshold)));
      break;
  }
  const bool is_share =
      finish.kind == Finish::Kind::sigmoid || finish.kind == Finish::Kind::softmax;
  if (is_share && finish.type == at::kByte) value = value.mul(255).add(0.5F);
  out.copy_(value);
  return logits.isfinite().all().item<bool>();
}

bool finish_rows(const at::Tensor& sums,
                 const WindowGrid& grid,
                 int64_t begin,
                 int64_t end,
                 const Finish& finish,
                 const at::Tensor& out) {
  if (begin >= end) return true;
  const at::Tensor weights = at::zeros({end - begin, sums.size(2), sums.size(3)}, sums.options());
  for (int64_t w = 0; w < grid.windows(); ++w) {
    const WindowBox box = box_of(grid, w);
    const int64_t low = std::max(begin, box.from[0]), high = std::min(end, box.to[0]);
    if (low >= high) continue;
    at::Tensor part = weights.narrow(0, low - begin, high - low);
    at::Tensor map = grid.map.narrow(0, low - box.from[0] + box.skip[0], high - low);
    for (std::size_t d = 1; d < 3; ++d) {
      const auto dim = static_cast<int64_t>(d);
      part = part.narrow(dim, box.from[d], box.to[d] - box.from[d]);
      map = map.narrow(dim, box.skip[d], box.to[d] - box.from[d]);
    }
    part.add_(map);
  }
  bool is_finite = true;
  for_runs(begin, end, sums, [&](int64_t from, int64_t to, int64_t place) {
    is_finite = finish_voxels(sums.narrow(1, place, to - from),
                              weights.narrow(0, from - begin, to - from),
                              finish,
                              out.narrow(1, from - begin, to - from)) &&
                is_finite;
  });
  return is_finite;
}

}  // namespace aten
}  // namespace cytra::ops
