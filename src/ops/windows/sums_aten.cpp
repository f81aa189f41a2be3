// Part of ops/windows/passes.h: the passes by ATen's operations, and by a GPU's kernels.

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>

#include "device/backend.h"
#include "ops/cuda/window_sums.h"
#include "ops/windows/passes.h"

namespace cytra::ops {
namespace {

int64_t ring_row(int64_t row, const at::Tensor& ring) {
  return row % ring.size(1);
}

/// Calls run(from, to, place) for each run of rows that lie side by side in a ring.
void for_runs(int64_t begin, int64_t end, const at::Tensor& ring, auto run) {
  while (begin < end) {
    const int64_t place = ring_row(begin, ring);
    const int64_t count = std::min(end - begin, ring.size(1) - place);
    run(begin, begin + count, place);
    begin += count;
  }
}

/// The kernels of a kind of GPU; null where this build has none.
struct GpuPasses {
  CudaGatherPass gather = nullptr;
  CudaSumPass sum = nullptr;
  CudaFinishPass finish = nullptr;
};
const GpuPasses& gpu_passes(c10::Device device) {
  static const GpuPasses passes = {device::kernel<CudaGatherPass>(device, kCudaGather),
                                   device::kernel<CudaSumPass>(device, kCudaSum),
                                   device::kernel<CudaFinishPass>(device, kCudaFinish)};
  return passes;
}

/// False: there is no kernel for it.
bool gather_on_gpu(const at::Tensor& image,
                   const WindowGrid& grid,
                   const at::Tensor& table,
                   int64_t first,
                   double pad_value,
                   const at::Tensor& windows) {
  if (!device::is_accelerator(image.device()) || gpu_passes(image.device()).gather == nullptr)
    return false;
  CudaGather task{image.get_device(), image.const_data_ptr(), image.scalar_type()};
  task.length = image.size(1);
  const int32_t* next = table.const_data_ptr<int32_t>();
  for (std::size_t d = 0; d < 3; ++d) {
    task.starts[d] = next;
    task.counts[d] = std::ssize(grid.axes[d].starts);
    next += task.counts[d];
  }
  for (std::size_t d = 0; d < 3; ++d) {
    task.source[d] = next;
    next += grid.axes[d].source.size();
  }
  task.first = first;
  task.pad_value = static_cast<float>(pad_value);
  task.windows = windows.mutable_data_ptr<float>();
  std::copy_n(image.strides().begin(), 4, task.image_strides.begin());
  std::copy_n(windows.strides().begin(), 5, task.strides.begin());
  std::copy_n(windows.sizes().begin(), 5, task.shape.begin());
  return gpu_passes(image.device()).gather(task);
}

/// False: there is no kernel for it.
bool sum_on_gpu(const at::Tensor& values,
                const WindowGrid& grid,
                const WindowBox& box,
                const at::Tensor& sums) {
  const at::ScalarType type = values.scalar_type();
  const bool is_known = type == at::kFloat || type == at::kHalf || type == at::kBFloat16;
  if (!device::is_accelerator(sums.device()) || !is_known ||
      gpu_passes(sums.device()).sum == nullptr)
    return false;
  at::Tensor part = values, map = grid.map;
  for (std::size_t d = 0; d < 3; ++d) {
    const auto dim = static_cast<int64_t>(d);
    part = part.narrow(dim + 1, box.skip[d], box.to[d] - box.from[d]);
    map = map.narrow(dim, box.skip[d], box.to[d] - box.from[d]);
  }
  gpu_passes(sums.device())
      .sum({sums.get_device(),
            part.const_data_ptr(),
            type,
            {part.stride(0), part.stride(1), part.stride(2), part.stride(3)},
            box.from,
            box.to,
            box.fresh,
            map.const_data_ptr<float>(),
            {map.stride(0), map.stride(1)},
            sums.mutable_data_ptr<float>(),
            {sums.size(0), sums.size(1), sums.size(2), sums.size(3)}});
  return true;
}

void gather_one(const at::Tensor& image,
                const WindowGrid& grid,
                const at::Tensor& table,
                int64_t w,
                double pad_value,
                const at::Tensor& window) {
  const WindowBox box = box_of(grid, w);
  const std::array<int64_t, 3> place = grid.place(w);
  at::Tensor found = image;
  int64_t line = 0;  // where the axis' source begins in the table
  for (const WindowAxis& axis : grid.axes) line += std::ssize(axis.starts);
  for (std::size_t d = 0; d < 3; ++d) {
    const WindowAxis& axis = grid.axes[d];
    const auto dim = static_cast<int64_t>(d) + 1;
    const int64_t start = axis.starts[static_cast<std::size_t>(place[d])];
    const auto begin = axis.source.begin() + start, end = begin + axis.roi;
    const at::Tensor rows = table.narrow(0, line + start, axis.roi);
    line += std::ssize(axis.source);
    const int64_t first = std::max<int64_t>(*begin, 0) % image.size(dim);
    const bool is_run = box.skip[d] == 0 && box.to[d] - box.from[d] == axis.roi &&
                        first + axis.roi <= image.size(dim);
    found = is_run ? found.narrow(dim, first, axis.roi)
                   : found.index_select(dim, rows.clamp_min(0).remainder(image.size(dim)));
    if (std::find(begin, end, -1) == end) continue;
    std::vector<int64_t> shape(4, 1);
    shape[d + 1] = axis.roi;
    found = found.to(at::kFloat).masked_fill(rows.lt(0).reshape(shape), pad_value);
  }
  window.copy_(found);
}

void gather_by_aten(const at::Tensor& image,
                    const WindowGrid& grid,
                    int64_t first,
                    double pad_value,
                    const at::Tensor& windows) {
  const at::Tensor table = grid.table.defined() ? grid.table : window_table(grid, image.device());
  if (gather_on_gpu(image, grid, table, first, pad_value, windows)) return;
  for (int64_t s = 0; s < windows.size(0); ++s)
    gather_one(image, grid, table, first + s, pad_value, windows[s]);
}

void accumulate_by_aten(const at::Tensor& values,
                        const WindowGrid& grid,
                        int64_t first,
                        const at::Tensor& sums) {
  for (int64_t s = 0; s < values.size(0); ++s) {
    const WindowBox box = box_of(grid, first + s);
    if (sum_on_gpu(values[s], grid, box, sums)) continue;
    const auto &from = box.from, &to = box.to, &fresh = box.fresh;
    const at::Tensor weighted = values[s].to(at::kFloat) * grid.map;
    // The voxels that earlier windows cover: all rows in front of the fresh ones, and so on
    // inwards.
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

/// sums (K,...), weights like one class or undefined -> out (K',...).
void finish_counted(const at::Tensor& sums,
                    const at::Tensor& weights,
                    const Finish& finish,
                    const at::Tensor& out,
                    const at::Tensor& bad) {
  const float cut = static_cast<float>(std::log(finish.threshold / (1 - finish.threshold)));
  const bool has_lines = sums.dim() == 4 && weights.defined() && sums.stride(3) == 1 &&
                         sums.stride(1) == sums.size(2) * sums.size(3) && out.stride(3) == 1 &&
                         out.stride(1) == out.size(2) * out.size(3);
  if (device::is_accelerator(sums.device()) && has_lines &&
      gpu_passes(sums.device()).finish != nullptr) {
    const at::Tensor lines = weights.contiguous();
    const bool is_done = gpu_passes(sums.device())
                             .finish({sums.get_device(),
                                      sums.const_data_ptr<float>(),
                                      lines.const_data_ptr<float>(),
                                      sums.size(0),
                                      sums.size(1),
                                      sums.size(2) * sums.size(3),
                                      {sums.stride(0), sums.stride(1)},
                                      {out.stride(0), out.stride(1)},
                                      finish.kind,
                                      cut,
                                      out.mutable_data_ptr(),
                                      out.scalar_type(),
                                      bad.defined() ? bad.mutable_data_ptr<int64_t>() : nullptr});
    if (is_done) return;
  }
  // counted first: `out` may be the sums
  if (bad.defined()) bad.add_(sums.isfinite().logical_not_().sum());
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
      value = logits.gt(cut);
      break;
    case Finish::Kind::entropy:
      value = at::special_entr(logits.softmax(0)).sum(0, /*keepdim=*/true);
      break;
    case Finish::Kind::binary_entropy:
      value = at::special_entr(logits.sigmoid()) + at::special_entr(logits.neg().sigmoid());
      break;
  }
  const bool is_share =
      finish.kind == Finish::Kind::sigmoid || finish.kind == Finish::Kind::softmax;
  if (is_share && finish.type == at::kByte) value = value.mul(255).add(0.5F);
  out.copy_(value);
}

void finish_rows_by_aten(const at::Tensor& sums,
                         const WindowGrid& grid,
                         int64_t begin,
                         int64_t end,
                         const Finish& finish,
                         const at::Tensor& out,
                         const at::Tensor& bad) {
  if (begin >= end) return;
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
  for_runs(begin, end, sums, [&](int64_t from, int64_t to, int64_t place) {
    finish_counted(sums.narrow(1, place, to - from),
                   weights.narrow(0, from - begin, to - from),
                   finish,
                   out.narrow(1, from - begin, to - from),
                   bad);
  });
}

}  // namespace

const WindowPasses& aten_passes() {
  static constexpr WindowPasses passes{
      gather_by_aten,
      accumulate_by_aten,
      finish_rows_by_aten,
      [](const at::Tensor& sums,
         const at::Tensor& weights,
         const Finish& finish,
         const at::Tensor& out) { finish_counted(sums, weights, finish, out, {}); }};
  return passes;
}

}  // namespace cytra::ops
