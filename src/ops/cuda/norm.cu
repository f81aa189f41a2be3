// Values are read and written 16 bytes at a time, where channels, or voxels of channels-first
// tensors, divide so. A block's threads are lanes of channels by lines of voxels.
#include <cstdint>
#include <initializer_list>
#include <type_traits>

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include "ops/cuda/launch.h"
#include "ops/cuda/norm.h"
#include "ops/cuda/norm_passes.h"

#ifdef __CUDACC__
#define CYTRA_UNROLL _Pragma("unroll")
#else
#define CYTRA_UNROLL
#endif

namespace cytra::ops::gpu {
namespace {

constexpr int kLines = 8;  // of kLanes: finish_share's block

template <class T, int kWidth>
struct alignas(sizeof(T) * kWidth) Vector {
  T of[kWidth];
};

/// x and, where it is needed, the gradient with it.
template <class T, int kWidth, bool kTakesGrad>
struct Values {
  Vector<T, kWidth> x, grad;
  __device__ __forceinline__ void read(const T* of_x, const T* of_grad) {
    x = *reinterpret_cast<const Vector<T, kWidth>*>(of_x);
    if constexpr (kTakesGrad) grad = *reinterpret_cast<const Vector<T, kWidth>*>(of_grad);
  }
  __device__ __forceinline__ float at(int i) const { return static_cast<float>(x.of[i]); }
  __device__ __forceinline__ float grad_at(int i) const {
    if constexpr (kTakesGrad) return static_cast<float>(grad.of[i]);
    return 0;
  }
};

/// What a launch is compiled for.
template <class Value, bool kIsLast, int kVector>
struct Form {
  using T = Value;
  static constexpr int kWidth = kVector;                // values of a vector
  static constexpr int kCells = kIsLast ? kVector : 1;  // cells of a vector
};

template <class Form>
__device__ __forceinline__ ThreadShare share_of_thread(const Cells& cells) {
  return share_of(cells,
                  Form::kWidth,
                  blockIdx.x,
                  blockIdx.y,
                  gridDim.y,
                  static_cast<int>(threadIdx.y),
                  static_cast<int>(blockDim.y),
                  static_cast<int>(threadIdx.x),
                  static_cast<int>(blockDim.x));
}

/// Calls use(values) for a thread's next `count` vectors from `at` on; several are loaded at the
/// same time.
template <class Form, class Term, class Use>
__device__ __forceinline__ void for_vectors(const typename Form::T* x,
                                            const typename Form::T* grad,
                                            int64_t at,
                                            int64_t step,
                                            int count,
                                            const Use& use) {
  constexpr int kAtOnce = 4;
  Values<typename Form::T, Form::kWidth, Term::kTakesGrad> values[kAtOnce];
  int i = 0;
  for (; i + kAtOnce <= count; i += kAtOnce) {
    CYTRA_UNROLL
    for (int k = 0; k < kAtOnce; ++k) values[k].read(x + at + k * step, grad + at + k * step);
    CYTRA_UNROLL
    for (int k = 0; k < kAtOnce; ++k) use(values[k], at + k * step);
    at += kAtOnce * step;
  }
  for (; i < count; ++i, at += step) {
    values[0].read(x + at, grad + at);
    use(values[0], at);
  }
}

/// The sums of `term` over a part of the voxels, for the cells of a block.
template <class Form, class Term>
__global__ void sum_cells(const Cells cells,
                          const Term term,
                          const typename Form::T* x,
                          const typename Form::T* grad,
                          Sums* of_splits) {
  constexpr int kWidth = Form::kWidth, kCells = Form::kCells, kRun = kTerms * kCells / kWidth;
  const ThreadShare share = share_of_thread<Form>(cells);
  Sums all[kCells];
  typename Term::Run runs[kCells];
  CYTRA_UNROLL
  for (int i = 0; i < kCells; ++i) {
    all[i] = {0, 0};
    if (share.count > 0) runs[i] = term.run(share.cell + i);
  }
  for (int64_t done = 0; done < share.count; done += kRun) {
    const int64_t at = share.first + done * share.step;
    const int count = static_cast<int>(share.count - done < kRun ? share.count - done : kRun);
    const auto first = *reinterpret_cast<const Vector<typename Form::T, kWidth>*>(x + at);
    CYTRA_UNROLL
    for (int i = 0; i < kCells; ++i) term.begin(runs[i], static_cast<float>(first.of[i]));
    for_vectors<Form, Term>(x, grad, at, share.step, count, [&](const auto& values, int64_t) {
      CYTRA_UNROLL
      for (int i = 0; i < kWidth; ++i) term.add(runs[i % kCells], values.at(i), values.grad_at(i));
    });
    CYTRA_UNROLL
    for (int i = 0; i < kCells; ++i) term.end(runs[i], count * (kWidth / kCells), all[i]);
  }
  __shared__ Sums sums[kCells][kThreads];
  const int thread = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x);
  CYTRA_UNROLL
  for (int i = 0; i < kCells; ++i) sums[i][thread] = all[i];
  for (int half = static_cast<int>(blockDim.y) / 2; half > 0; half /= 2) {
    __syncthreads();
    if (static_cast<int>(threadIdx.y) >= half) continue;
    CYTRA_UNROLL
    for (int i = 0; i < kCells; ++i) {
      const Sums& other = sums[i][thread + half * static_cast<int>(blockDim.x)];
      sums[i][thread].first += other.first;
      sums[i][thread].second += other.second;
    }
  }
  if (threadIdx.y != 0 || share.cell < 0) return;
  CYTRA_UNROLL
  for (int i = 0; i < kCells; ++i)
    of_splits[blockIdx.y * cells.count() + share.cell + i] = sums[i][thread];
}

/// y = pass(coefficients of the cell, x, grad)
template <class Form, class Pass>
__global__ void run_pass(const Cells cells,
                         const Pass pass,
                         const typename Form::T* x,
                         const typename Form::T* grad,
                         typename Form::T* y) {
  constexpr int kWidth = Form::kWidth, kCells = Form::kCells;
  const ThreadShare share = share_of_thread<Form>(cells);
  if (share.count == 0) return;
  Coefficients of[kCells];
  CYTRA_UNROLL
  for (int i = 0; i < kCells; ++i) of[i] = pass.coefficients[share.cell + i];
  for_vectors<Form, Pass>(x,
                          grad,
                          share.first,
                          share.step,
                          static_cast<int>(share.count),
                          [&](const auto& values, int64_t at) {
                            Vector<typename Form::T, kWidth> made;
                            CYTRA_UNROLL
                            for (int i = 0; i < kWidth; ++i)
                              made.of[i] = static_cast<typename Form::T>(
                                  pass(of[i % kCells], values.at(i), values.grad_at(i)));
                            *reinterpret_cast<Vector<typename Form::T, kWidth>*>(y + at) = made;
                          });
}

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

/// The steps of `finish` (norm_passes.h). A block has a share, of which each line of lanes sums the
/// splits of other cells, into the first's share; the first line takes the steps.
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

__global__ void sum_parameters(const ParameterGrad pass) {
  const int64_t channel = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (channel < pass.cells.channels) pass(channel);
}

template <class Form>
dim3 block_of(const Cells& cells) {
  const auto lanes = static_cast<unsigned>(cells.lanes(Form::kWidth));
  return {lanes, kThreads / lanes};
}

/// A form with at most kSumWidth cells of a vector: sums of more would need too many registers.
template <class Of>
using FormOfSums =
    std::conditional_t<(Of::kCells > kSumWidth), Form<typename Of::T, true, kSumWidth>, Of>;

/// The sums of `term`, and what `finish` makes of them.
template <class Form, class Term, class Finish>
void launch_sums(const CudaNorm& task, const void* grad, const Term& term, const Finish& finish) {
  using T = typename Form::T;
  using OfSums = FormOfSums<Form>;
  const Cells& cells = task.cells;
  const auto splits = static_cast<unsigned>(task.sums.splits);
  launch(sum_cells<OfSums, Term>,
         dim3(static_cast<unsigned>(cells.blocks(OfSums::kWidth)), splits),
         block_of<OfSums>(cells),
         cells,
         term,
         static_cast<const T*>(task.x),
         static_cast<const T*>(grad),
         task.sums.of_splits);
  launch(finish_share<Finish>,
         static_cast<unsigned>(cells.shares()),
         dim3(kLanes, kLines),
         finish,
         task.sums.of_splits,
         task.sums.splits);
}

/// A thread has some vectors, for which it reads its cells' coefficients once.
template <class Form, class Pass>
void launch_pass(const CudaNorm& task, const void* grad, const Pass& pass, void* y) {
  using T = typename Form::T;
  constexpr int64_t kVectors = Form::kCells > 1 ? 16 : 4, kMostParts = 65535;
  const Cells& cells = task.cells;
  const dim3 block = block_of<Form>(cells);
  const int64_t of_part = block.y * kVectors;
  const int64_t parts = std::min((cells.lines(Form::kWidth) + of_part - 1) / of_part, kMostParts);
  launch(run_pass<Form, Pass>,
         dim3(static_cast<unsigned>(cells.blocks(Form::kWidth)), static_cast<unsigned>(parts)),
         block,
         cells,
         pass,
         static_cast<const T*>(task.x),
         static_cast<const T*>(grad),
         static_cast<T*>(y));
}

template <class Form>
void normalize(const CudaNorm& task) {
  const Cells& cells = task.cells;
  launch_sums<Form>(
      task,
      nullptr,
      MomentTerm{},
      FinishMoments{
          cells, task.sums.of_splits, task.weight, task.bias, task.statistics, task.coefficients});
  launch_pass<Form>(task, nullptr, Normalize{task.coefficients, cells.slope}, task.y);
}

template <class Form>
void normalize_grad(const CudaNormGrad& task) {
  const CudaNorm& norm = task.norm;
  const Cells& cells = norm.cells;
  Sums* sums = norm.sums.of_splits;
  launch_sums<Form>(norm,
                    task.grad,
                    GradTerm{norm.coefficients, cells.slope},
                    FinishGrad{cells, sums, norm.weight, norm.statistics, norm.coefficients});
  if (task.dweight != nullptr) {
    launch(sum_parameters,
           static_cast<unsigned>((cells.channels + kThreads - 1) / kThreads),
           kThreads,
           ParameterGrad{cells, sums, task.dweight, task.dbias});
  }
  if (task.dx != nullptr)
    launch_pass<Form>(norm, task.grad, InputGrad{norm.coefficients, cells.slope}, task.dx);
}

/// Calls run(Form()) for the layout, with vectors where all of `pointers` and the sizes fit them.
template <class T, class Run>
void with_layout(const Cells& cells, std::initializer_list<const void*> pointers, const Run& run) {
  constexpr int kVector = 16 / sizeof(T);
  bool fits = (cells.is_channels_last ? cells.channels : cells.voxels) % kVector == 0;
  for (const void* pointer : pointers)
    fits = fits && reinterpret_cast<uintptr_t>(pointer) % (kVector * sizeof(T)) == 0;
  if (cells.is_channels_last) {
    if (fits) return run(Form<T, true, kVector>());
    return run(Form<T, true, 1>());
  }
  if (fits) return run(Form<T, false, kVector>());
  return run(Form<T, false, 1>());
}

/// Calls run(T()) for the type of the values.
void with_type(c10::ScalarType type, const auto& run) {
  if (type == c10::ScalarType::BFloat16) return run(c10::BFloat16());
  if (type == c10::ScalarType::Half) return run(c10::Half());
  return run(float());
}

}  // namespace
}  // namespace cytra::ops::gpu

extern "C" void cytra_cuda_norm(const cytra::ops::gpu::CudaNorm& task) {
  using namespace cytra::ops::gpu;
  const cytra::ops::OnDevice on_device(task.device);
  with_type(task.type, [&](auto zero) {
    with_layout<decltype(zero)>(
        task.cells, {task.x, task.y}, [&](auto form) { normalize<decltype(form)>(task); });
  });
}

extern "C" void cytra_cuda_norm_grad(const cytra::ops::gpu::CudaNormGrad& task) {
  using namespace cytra::ops::gpu;
  const cytra::ops::OnDevice on_device(task.norm.device);
  with_type(task.norm.type, [&](auto zero) {
    with_layout<decltype(zero)>(task.norm.cells, {task.norm.x, task.grad, task.dx}, [&](auto form) {
      normalize_grad<decltype(form)>(task);
    });
  });
}
