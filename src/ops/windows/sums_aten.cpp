// The passes by ATen's operations; on a GPU the kernels of libcytra_cuda.so take what they can.
#include "ops/windows/sums_aten.h"

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>

#include "ops/cuda/window_sums.h"
#include "ops/cuda_kernel.h"
#include "ops/windows/window_box.h"

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

/// The kernels on a GPU; null where this build has none.
struct CudaPasses {
  CudaSumPass sum = nullptr;
  CudaFinishPass finish = nullptr;
};
const CudaPasses& cuda_passes() {
  static const CudaPasses passes = {cuda_kernel<CudaSumPass>(kCudaSum),
                                    cuda_kernel<CudaFinishPass>(kCudaFinish)};
  return passes;
}

/// False: there is no kernel for it.
bool sum_on_gpu(const at::Tensor& values,
                const WindowGrid& grid,
                const WindowBox& box,
                const at::Tensor& sums) {
  const at::ScalarType type = values.scalar_type();
  const bool is_known = type == at::kFloat || type == at::kHalf || type == at::kBFloat16;
  if (!sums.is_cuda() || !is_known || cuda_passes().sum == nullptr) return false;
  at::Tensor part = values, map = grid.map;
  for (std::size_t d = 0; d < 3; ++d) {
    const auto dim = static_cast<int64_t>(d);
    part = part.narrow(dim + 1, box.skip[d], box.to[d] - box.from[d]);
    map = map.narrow(dim, box.skip[d], box.to[d] - box.from[d]);
  }
  cuda_passes().sum({sums.get_device(),
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

}  // namespace

namespace aten {

static void gather_one(const at::Tensor& image,
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

void gather(const at::Tensor& image,
            const WindowGrid& grid,
            int64_t first,
            double pad_value,
            const at::Tensor& windows) {
  for (int64_t s = 0; s < windows.size(0); ++s)
    gather_one(image, grid, first + s, pad_value, windows[s]);
}

void accumulate(const at::Tensor& values,
                const WindowGrid& grid,
                int64_t first,
                const at::Tensor& sums) {
  for (int64_t s = 0; s < values.size(0); ++s) {
    const WindowBox box = box_of(grid, first + s);
    if (sum_on_gpu(values[s], grid, box, sums)) continue;
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
  const float cut = static_cast<float>(std::log(finish.threshold / (1 - finish.threshold)));
  const bool has_lines = sums.dim() == 4 && weights.defined() && sums.stride(3) == 1 &&
                         sums.stride(1) == sums.size(2) * sums.size(3) && out.stride(3) == 1 &&
                         out.stride(1) == out.size(2) * out.size(3);
  if (sums.is_cuda() && has_lines && cuda_passes().finish != nullptr) {
    const at::Tensor bad = at::zeros({1}, sums.options().dtype(at::kInt));
    const bool is_done = cuda_passes().finish({sums.get_device(),
                                               sums.const_data_ptr<float>(),
                                               weights.contiguous().const_data_ptr<float>(),
                                               sums.size(0),
                                               sums.size(1),
                                               sums.size(2) * sums.size(3),
                                               {sums.stride(0), sums.stride(1)},
                                               {out.stride(0), out.stride(1)},
                                               finish.kind,
                                               cut,
                                               out.mutable_data_ptr(),
                                               out.scalar_type(),
                                               bad.mutable_data_ptr<int32_t>()});
    if (is_done) return bad.item<int32_t>() == 0;
  }
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
