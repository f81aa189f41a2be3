// Blocks of 32 x 8 threads sum one cell (channels-first), or 32 channels of a sample
// (channels-last), so that neighbours in a warp read neighbours in memory.
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include "ops/cuda/launch.h"
#include "ops/cuda/norm.h"
#include "ops/cuda/norm_passes.h"

namespace cytra::ops::gpu {
namespace {

constexpr int kLanes = 32, kLines = 8;

/// The sums of a warp's lanes, in the first of them.
__device__ __forceinline__ Sums sum_lanes(Sums of) {
  for (int lane = kLanes / 2; lane > 0; lane /= 2) {
    of.first += __shfl_down_sync(~0U, of.first, lane);
    of.second += __shfl_down_sync(~0U, of.second, lane);
  }
  return of;
}

/// ... and in all of them.
__device__ __forceinline__ Sums sum_all_lanes(Sums of) {
  of = sum_lanes(of);
  return {__shfl_sync(~0U, of.first, 0), __shfl_sync(~0U, of.second, 0)};
}

/// Grid: (cells, splits) channels-first, (samples x tiles of channels, splits) channels-last.
template <class Term>
__global__ void sum_cells(const Term term, Sums* of_splits) {
  const Cells& cells = term.cells;
  const int64_t tiles = (cells.channels + kLanes - 1) / kLanes;
  int64_t cell = blockIdx.x, first = threadIdx.y * kLanes + threadIdx.x, step = kLanes * kLines;
  bool is_inside = true;
  if (cells.is_channels_last) {
    const int64_t channel = static_cast<int64_t>(blockIdx.x) % tiles * kLanes + threadIdx.x;
    is_inside = channel < cells.channels;
    cell = static_cast<int64_t>(blockIdx.x) / tiles * cells.channels + channel;
    first = threadIdx.y;
    step = kLines;
  }
  const int64_t part = (cells.voxels + gridDim.y - 1) / gridDim.y, begin = part * blockIdx.y;
  const int64_t end = begin + part < cells.voxels ? begin + part : cells.voxels;
  __shared__ Sums sums[kLines][kLanes];
  sums[threadIdx.y][threadIdx.x] =
      is_inside ? sums_of(term, cell, begin + first, end, step) : Sums{0, 0};
  __syncthreads();
  if (threadIdx.y != 0) return;
  Sums all{0, 0};
  for (const auto& line : sums) {
    all.first += line[threadIdx.x].first;
    all.second += line[threadIdx.x].second;
  }
  if (!cells.is_channels_last) {
    all = sum_lanes(all);
    is_inside = threadIdx.x == 0;
  }
  if (is_inside) of_splits[blockIdx.y * cells.count() + cell] = all;
}

/// The steps of `finish` (norm_passes.h). A block has a share, of which each line of lanes sums the
/// splits of other cells, into the first's place; the first line takes the steps.
template <class Finish>
__global__ void finish_share(const Finish finish, Sums* of_splits, int64_t splits) {
  const Cells& cells = finish.cells();
  const int64_t share = blockIdx.x, count = cells.share_cells();
  if (splits > 1) {
    for (int64_t i = threadIdx.y; i < count; i += kLines) {
      Sums* of = of_splits + cells.cell(share, i);
      Sums all{0, 0};
      for (int64_t split = threadIdx.x; split < splits; split += kLanes) {
        all.first += of[split * cells.count()].first;
        all.second += of[split * cells.count()].second;
      }
      all = sum_lanes(all);
      if (threadIdx.x == 0) *of = all;
    }
    __syncthreads();
  }
  if (threadIdx.y != 0) return;
  Sums all{0, 0}, more{0, 0};
  for (int64_t i = threadIdx.x; i < count; i += kLanes) {
    const Sums of = finish.first_step(cells.cell(share, i), share);
    all.first += of.first;
    all.second += of.second;
  }
  all = sum_all_lanes(all);
  for (int64_t i = threadIdx.x; i < count; i += kLanes)
    more.first += finish.second_step(cells.cell(share, i), all).first;
  more = sum_all_lanes(more);
  for (int64_t i = threadIdx.x; i < count; i += kLanes)
    finish.last_step(cells.cell(share, i), share, all, more);
}

template <class Pass>
__global__ void run_each(const Pass pass, int64_t count) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += step)
    pass(i);
}

/// pass(i) for every i below `count`.
template <class Pass>
void launch_each(const Pass& pass, int64_t count) {
  constexpr int64_t kThreads = 256, kBlocks = 1 << 16;
  const int64_t blocks = std::min((count + kThreads - 1) / kThreads, kBlocks);
  launch(run_each<Pass>, static_cast<unsigned>(blocks), kThreads, pass, count);
}

/// The sums of `term`, and what `finish` makes of them.
template <class Term, class Finish>
void launch_sums(const Term& term, const Finish& finish, const CudaSums& sums) {
  const Cells& cells = term.cells;
  const int64_t tiles = (cells.channels + kLanes - 1) / kLanes;
  const int64_t blocks = cells.is_channels_last ? cells.samples * tiles : cells.count();
  const dim3 grid(static_cast<unsigned>(blocks), static_cast<unsigned>(sums.splits));
  const dim3 block(kLanes, kLines);
  launch(sum_cells<Term>, grid, block, term, sums.of_splits);
  launch(finish_share<Finish>,
         static_cast<unsigned>(cells.shares()),
         block,
         finish,
         sums.of_splits,
         sums.splits);
}

template <class T>
void normalize(const CudaNorm& task) {
  const Cells& cells = task.cells;
  const MomentTerm<T> term{cells, static_cast<const T*>(task.x)};
  const FinishMoments<T> finish{
      term, task.sums.of_splits, task.weight, task.bias, task.statistics, task.coefficients};
  launch_sums(term, finish, task.sums);
  launch_each(Normalize<T>{cells, term.x, static_cast<T*>(task.y), task.coefficients},
              cells.count() * cells.voxels);
}

template <class T>
void normalize_grad(const CudaNormGrad& task) {
  const CudaNorm& norm = task.norm;
  const Cells& cells = norm.cells;
  Sums* sums = norm.sums.of_splits;
  const GradTerm<T> term{
      cells, static_cast<const T*>(norm.x), static_cast<const T*>(task.grad), norm.coefficients};
  const FinishGrad finish{cells, sums, norm.weight, norm.statistics, norm.coefficients};
  launch_sums(term, finish, norm.sums);
  if (task.dweight != nullptr)
    launch_each(ParameterGrad{cells, sums, task.dweight, task.dbias}, cells.channels);
  if (task.dx != nullptr)
    launch_each(InputGrad<T>{term, static_cast<T*>(task.dx)}, cells.count() * cells.voxels);
}

/// Calls run(T()) for the type of the values.
template <class Run>
void with_type(c10::ScalarType type, const Run& run) {
  if (type == c10::ScalarType::BFloat16) return run(c10::BFloat16());
  if (type == c10::ScalarType::Half) return run(c10::Half());
  return run(float());
}

}  // namespace
}  // namespace cytra::ops::gpu

extern "C" void cytra_cuda_norm(const cytra::ops::gpu::CudaNorm& task) {
  using namespace cytra::ops::gpu;
  const cytra::ops::OnDevice on_device(task.device);
  with_type(task.type, [&](auto zero) { normalize<decltype(zero)>(task); });
}

extern "C" void cytra_cuda_norm_grad(const cytra::ops::gpu::CudaNormGrad& task) {
  using namespace cytra::ops::gpu;
  const cytra::ops::OnDevice on_device(task.norm.device);
  with_type(task.norm.type, [&](auto zero) { normalize_grad<decltype(zero)>(task); });
}
