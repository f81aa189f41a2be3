// Blocks of 32 x 8 threads sum one cell (channels-first), or 32 channels of a sample
// (channels-last), so that neighbours in a warp read neighbours in memory.
#include <algorithm>

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include "ops/cuda/norm.h"
#include "ops/cuda/norm_passes.h"

namespace cytra::ops::gpu {
namespace {

constexpr int kLanes = 32, kLines = 8;

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
    for (int lane = kLanes / 2; lane > 0; lane /= 2) {
      all.first += __shfl_down_sync(~0U, all.first, lane);
      all.second += __shfl_down_sync(~0U, all.second, lane);
    }
    is_inside = threadIdx.x == 0;
  }
  if (is_inside) of_splits[blockIdx.y * cells.count() + cell] = all;
}

/// The sums of all splits, in the first's place.
__global__ void sum_splits(Sums* of_splits, int64_t cells, int64_t splits) {
  const int64_t cell = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (cell >= cells) return;
  Sums all = of_splits[cell];
  for (int64_t split = 1; split < splits; ++split) {
    all.first += of_splits[split * cells + cell].first;
    all.second += of_splits[split * cells + cell].second;
  }
  of_splits[cell] = all;
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
void launch_each(const Pass& pass, int64_t count, int64_t threads = 256) {
  constexpr int64_t kBlocks = 1 << 16;
  const int64_t blocks = std::min((count + threads - 1) / threads, kBlocks);
  run_each<<<static_cast<unsigned>(blocks),
             static_cast<unsigned>(threads),
             0,
             c10::cuda::getCurrentCUDAStream()>>>(pass, count);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

template <class Term>
void launch_sums(const Term& term, const CudaSums& sums) {
  const Cells& cells = term.cells;
  const int64_t tiles = (cells.channels + kLanes - 1) / kLanes;
  const int64_t blocks = cells.is_channels_last ? cells.samples * tiles : cells.count();
  const auto stream = c10::cuda::getCurrentCUDAStream();
  sum_cells<<<dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(sums.splits)),
              dim3(kLanes, kLines),
              0,
              stream>>>(term, sums.of_splits);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  if (sums.splits == 1) return;
  constexpr int64_t kThreads = 64;
  sum_splits<<<static_cast<unsigned>((cells.count() + kThreads - 1) / kThreads),
               kThreads,
               0,
               stream>>>(sums.of_splits, cells.count(), sums.splits);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

template <class T>
FinishMoments<T> finish_of(const CudaNorm& task, bool is_made) {
  return {{task.cells, static_cast<const T*>(task.x)},
          is_made ? task.sums.of_splits : nullptr,
          task.weight,
          task.bias,
          task.statistics,
          task.coefficients};
}

constexpr int64_t kShareThreads = 32;  // shares are few

template <class T>
void normalize(const CudaNorm& task) {
  const FinishMoments<T> finish = finish_of<T>(task, true);
  launch_sums(finish.term, task.sums);
  launch_each(finish, task.cells.shares(), kShareThreads);
  launch_each(Normalize<T>{task.cells, finish.term.x, static_cast<T*>(task.y), task.coefficients},
              task.cells.count() * task.cells.voxels);
}

template <class T>
void normalize_grad(const CudaNormGrad& task) {
  const CudaNorm& norm = task.norm;
  launch_each(finish_of<T>(norm, false), norm.cells.shares(), kShareThreads);  // the coefficients
  const GradTerm<T> term{norm.cells,
                         static_cast<const T*>(norm.x),
                         static_cast<const T*>(task.grad),
                         norm.coefficients};
  launch_sums(term, norm.sums);
  launch_each(
      FinishGrad{norm.cells, norm.sums.of_splits, norm.weight, norm.statistics, norm.coefficients},
      norm.cells.shares(),
      kShareThreads);
  if (task.dx != nullptr)
    launch_each(InputGrad<T>{term, static_cast<T*>(task.dx)},
                norm.cells.count() * norm.cells.voxels);
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
  const c10::cuda::CUDAGuard guard(static_cast<c10::DeviceIndex>(task.device));
  with_type(task.type, [&](auto zero) { normalize<decltype(zero)>(task); });
}

extern "C" void cytra_cuda_norm_grad(const cytra::ops::gpu::CudaNormGrad& task) {
  using namespace cytra::ops::gpu;
  const c10::cuda::CUDAGuard guard(static_cast<c10::DeviceIndex>(task.norm.device));
  with_type(task.norm.type, [&](auto zero) { normalize_grad<decltype(zero)>(task); });
}
