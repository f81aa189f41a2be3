// The operators of ops/windows/rows.inc, one thread for a voxel.
#include <algorithm>
#include <cstring>

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include "ops/cuda/launch.h"
#include "ops/cuda/window_sums.h"

#define CYTRA_LANES 1
#define CYTRA_INLINE __host__ __device__ __forceinline__
namespace cytra::ops {
namespace {
#include "ops/windows/rows.inc"

template <class Pass>
__global__ void run_pass(const Pass pass, int64_t voxels) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < voxels;
       i += step)
    pass(i / pass.width(), i % pass.width());
}

/// Calls pass(row, x) for every x of every row.
template <class Pass>
void launch_rows(int device, const Pass& pass, int64_t rows) {
  const int64_t voxels = rows * pass.width();
  if (voxels <= 0) return;
  const OnDevice on_device(device);
  constexpr int64_t kThreads = 256, kBlocks = 1 << 16;
  const auto blocks = static_cast<unsigned>(std::min((voxels + kThreads - 1) / kThreads, kBlocks));
  launch(run_pass<Pass>, blocks, kThreads, pass, voxels);
}

template <class T>
struct GatherPass {
  const T* image;
  int64_t image_strides[4], length;
  const int32_t *starts[3], *source[3];
  int64_t counts[3], first;
  float pad_value;
  float* windows;
  int64_t shape[5], strides[5];
  CYTRA_INLINE int64_t width() const { return shape[4]; }
  CYTRA_INLINE void operator()(int64_t row, int64_t x) const {
    const int64_t y = row % shape[3], z = row / shape[3] % shape[2];
    const int64_t c = row / shape[3] / shape[2] % shape[1],
                  s = row / shape[3] / shape[2] / shape[1];
    const int64_t w = first + s, in_plane = counts[1] * counts[2];
    const int32_t from_z = source[0][starts[0][w / in_plane] + z];
    const int32_t from_y = source[1][starts[1][w / counts[2] % counts[1]] + y];
    const int32_t from_x = source[2][starts[2][w % counts[2]] + x];
    float value = pad_value;
    if (from_z >= 0 && from_y >= 0 && from_x >= 0)
      value = static_cast<float>(image[c * image_strides[0] + from_z % length * image_strides[1] +
                                       from_y * image_strides[2] + from_x * image_strides[3]]);
    windows[s * strides[0] + c * strides[1] + z * strides[2] + y * strides[3] + x * strides[4]] =
        value;
  }
};

template <class T>
bool run_gather(const CudaGather& task) {
  GatherPass<T> pass{};
  pass.image = static_cast<const T*>(task.image);
  std::copy(task.image_strides.begin(), task.image_strides.end(), pass.image_strides);
  pass.length = task.length;
  std::copy(task.starts.begin(), task.starts.end(), pass.starts);
  std::copy(task.source.begin(), task.source.end(), pass.source);
  std::copy(task.counts.begin(), task.counts.end(), pass.counts);
  pass.first = task.first;
  pass.pad_value = task.pad_value;
  pass.windows = task.windows;
  std::copy(task.shape.begin(), task.shape.end(), pass.shape);
  std::copy(task.strides.begin(), task.strides.end(), pass.strides);
  launch_rows(task.device, pass, task.shape[0] * task.shape[1] * task.shape[2] * task.shape[3]);
  return true;
}

struct Box {
  int64_t from[3], to[3], fresh[3];
};

template <class T>
struct SumPass {
  const T* values;
  int64_t strides[4];
  Box box;
  const float* map;
  int64_t map_strides[2];
  float* sums;
  int64_t length, height, row;
  CYTRA_INLINE int64_t width() const { return box.to[2] - box.from[2]; }
  CYTRA_INLINE void operator()(int64_t index, int64_t x) const {
    const int64_t ny = box.to[1] - box.from[1], nz = box.to[0] - box.from[0];
    const int64_t dy = index % ny, dz = index / ny % nz, k = index / ny / nz;
    const int64_t y = dy + box.from[1], z = dz + box.from[0];
    const Sum<T> sum{sums + ((k * length + z % length) * height + y) * row + box.from[2],
                     values + k * strides[0] + dz * strides[1] + dy * strides[2],
                     strides[3],
                     {map + dz * map_strides[0] + dy * map_strides[1], 1.F, -3.4e38F}};
    if (z < box.fresh[0] || y < box.fresh[1] || x + box.from[2] < box.fresh[2])
      sum.add(x);
    else
      sum.set(x);
  }
};

template <class T>
void run_sum(const CudaSum& task) {
  SumPass<T> pass{};
  pass.values = static_cast<const T*>(task.values);
  std::copy(task.strides.begin(), task.strides.end(), pass.strides);
  std::copy(task.from.begin(), task.from.end(), pass.box.from);
  std::copy(task.to.begin(), task.to.end(), pass.box.to);
  std::copy(task.fresh.begin(), task.fresh.end(), pass.box.fresh);
  pass.map = task.map;
  std::copy(task.map_strides.begin(), task.map_strides.end(), pass.map_strides);
  pass.sums = task.sums;
  pass.length = task.shape[1];
  pass.height = task.shape[2];
  pass.row = task.shape[3];
  const int64_t rows = task.shape[0] * (task.to[0] - task.from[0]) * (task.to[1] - task.from[1]);
  launch_rows(task.device, pass, rows);
}

template <class T>
struct FinishPass {
  const float *sums, *weights;
  T* out;
  int64_t classes, line, class_stride, row_stride, out_class_stride, out_row_stride;
  Finish::Kind kind;
  float cut, scale, half;
  int64_t* bad;
  CYTRA_INLINE int64_t width() const { return line; }
  __device__ __forceinline__ void operator()(int64_t row, int64_t x) const {
    Voxel<float> voxel{
        sums + row * row_stride, classes, class_stride, weights[row * line + x], 0.F};
    T* to = out + row * out_row_stride + x;
    if (kind == Finish::Kind::argmax) {
      *to = static_cast<T>(voxel.argmax(x));
    } else if (kind == Finish::Kind::entropy) {
      *to = static_cast<T>(voxel.entropy(x));
    } else {
      Voxel<float>::Softmax softmax{};
      if (kind == Finish::Kind::softmax) softmax = voxel.softmax(x);
      for (int64_t k = 0; k < classes; ++k, to += out_class_stride) {
        const float value = kind == Finish::Kind::logits    ? voxel.logit(k, x)
                            : kind == Finish::Kind::sigmoid ? voxel.sigmoid(k, x)
                            : kind == Finish::Kind::softmax ? voxel.probability(k, x, softmax)
                            : kind == Finish::Kind::binary_entropy ? voxel.binary_entropy(k, x)
                                                                   : voxel.above(k, x, cut);
        *to = static_cast<T>(value * scale + half);
      }
    }
    if (bad == nullptr || voxel.bad == 0.F) return;
    unsigned long long count = 0;
    for (int64_t k = 0; k < classes; ++k) {
      const float sum = sums[row * row_stride + k * class_stride + x];
      count += sum - sum == 0.F ? 0 : 1;
    }
    atomicAdd(reinterpret_cast<unsigned long long*>(bad), count);
  }
};

template <class T>
bool run_finish(const CudaFinish& task) {
  const bool is_share = task.kind == Finish::Kind::sigmoid || task.kind == Finish::Kind::softmax;
  const bool is_byte = is_share && task.type == c10::ScalarType::Byte;
  const FinishPass<T> pass{task.sums,
                           task.weights,
                           static_cast<T*>(task.out),
                           task.classes,
                           task.width,
                           task.sum_strides[0],
                           task.sum_strides[1],
                           task.out_strides[0],
                           task.out_strides[1],
                           task.kind,
                           task.cut,
                           is_byte ? 255.F : 1.F,
                           is_byte ? 0.5F : 0.F,
                           task.bad};
  launch_rows(task.device, pass, task.rows);
  return true;
}

}  // namespace
}  // namespace cytra::ops

extern "C" bool cytra_cuda_gather(const cytra::ops::CudaGather& task) {
  using namespace cytra::ops;
  switch (task.type) {
    case c10::ScalarType::Float:
      return run_gather<float>(task);
    case c10::ScalarType::Half:
      return run_gather<c10::Half>(task);
    case c10::ScalarType::BFloat16:
      return run_gather<c10::BFloat16>(task);
    default:
      return false;
  }
}

extern "C" void cytra_cuda_sum(const cytra::ops::CudaSum& task) {
  using namespace cytra::ops;
  if (task.type == c10::ScalarType::BFloat16) return run_sum<c10::BFloat16>(task);
  if (task.type == c10::ScalarType::Half) return run_sum<c10::Half>(task);
  return run_sum<float>(task);
}

extern "C" bool cytra_cuda_finish(const cytra::ops::CudaFinish& task) {
  using namespace cytra::ops;
  switch (task.type) {
    case c10::ScalarType::Float:
      return run_finish<float>(task);
    case c10::ScalarType::Byte:
      return run_finish<uint8_t>(task);
    case c10::ScalarType::UInt16:
      return run_finish<uint16_t>(task);
    case c10::ScalarType::Int:
      return run_finish<int32_t>(task);
    default:
      return false;
  }
}
