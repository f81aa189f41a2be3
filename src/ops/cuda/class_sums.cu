// A thread has some voxels of an image, and all their classes. Probabilities are computed again in
// each pass, because the logits are in a cache by then.
#include <algorithm>
#include <cmath>

#include <c10/macros/Macros.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include "ops/cuda/class_sums.h"
#include "ops/cuda/launch.h"

namespace cytra::ops::gpu {
namespace {

constexpr int kClassThreads = 256, kClassWarp = 32;
constexpr int kVoxelsOfThread = static_cast<int>(kClassBlock) / kClassThreads;

template <class T>
struct ClassVoxels {
  explicit ClassVoxels(const CudaClasses& of)
      : of(of),
        logits(static_cast<const T*>(of.logits)),
        class_step(of.is_channels_last ? 1 : of.voxels),
        voxel_step(of.is_channels_last ? of.classes : 1) {}
  CudaClasses of;
  const T* logits;
  int64_t class_step, voxel_step;

  __device__ int64_t place(int64_t image, int64_t k, int64_t voxel) const {
    return image * of.classes * of.voxels + k * class_step + voxel * voxel_step;
  }
  __device__ float logit(int64_t image, int64_t k, int64_t voxel) const {
    return static_cast<float>(logits[place(image, k, voxel)]);
  }
  __device__ float mask(int64_t image, int64_t voxel) const {
    return of.mask == nullptr ? 1.F : of.mask[image * of.voxels + voxel];
  }
  __device__ float truth(int64_t image, int64_t k, int64_t voxel) const {
    if (!of.is_exclusive) return of.target[(image * of.classes + k) * of.voxels + voxel];
    return of.target[image * of.voxels + voxel] == static_cast<float>(k) ? 1.F : 0.F;
  }
  /// The largest logit, and one by the sum of e^(logit - largest); of masks neither is used.
  struct Softmax {
    float largest, sum;
  };
  __device__ Softmax softmax(int64_t image, int64_t voxel) const {
    Softmax result{0.F, 1.F};
    if (!of.is_exclusive) return result;
    result.largest = logit(image, 0, voxel);
    for (int64_t k = 1; k < of.classes; ++k) {
      const float z = logit(image, k, voxel);
      result.largest = z > result.largest || z != z ? z : result.largest;
    }
    result.sum = 0.F;
    for (int64_t k = 0; k < of.classes; ++k)
      result.sum += expf(logit(image, k, voxel) - result.largest);
    return result;
  }
  __device__ float probability(float z, const Softmax& softmax) const {
    if (of.is_exclusive) return expf(z - softmax.largest) / softmax.sum;
    const float e = expf(-fabsf(z));
    return (z >= 0.F ? 1.F : e) / (1.F + e);
  }
  /// The cross-entropy of the voxel. Ends the kernel where its number is no class, unless it does
  /// not count.
  __device__ float cross_entropy(int64_t image, int64_t voxel, const Softmax& softmax) const {
    if (!of.is_exclusive) {
      float sum = 0.F;
      for (int64_t k = 0; k < of.classes; ++k) {
        const float z = logit(image, k, voxel);
        sum += (z > 0.F ? z : 0.F) - z * truth(image, k, voxel) + log1pf(expf(-fabsf(z)));
      }
      return sum;
    }
    const float number = of.target[image * of.voxels + voxel];
    const auto k = static_cast<int64_t>(number);
    const bool is_class = k >= 0 && k < of.classes && static_cast<float>(k) == number;
    CUDA_KERNEL_ASSERT(is_class);
    return is_class ? softmax.largest - logit(image, k, voxel) + logf(softmax.sum) : 0.F;
  }
};

struct ClassTriple {
  float both, prediction, truth;
};

/// The sums of a block's threads, in the first of them. All call it.
__device__ __forceinline__ ClassTriple sum_block(ClassTriple of) {
  __shared__ ClassTriple of_warps[kClassThreads / kClassWarp];
  for (int lane = kClassWarp / 2; lane > 0; lane /= 2) {
    of.both += __shfl_down_sync(~0U, of.both, lane);
    of.prediction += __shfl_down_sync(~0U, of.prediction, lane);
    of.truth += __shfl_down_sync(~0U, of.truth, lane);
  }
  __syncthreads();  // the sums before are read
  if (threadIdx.x % kClassWarp == 0) of_warps[threadIdx.x / kClassWarp] = of;
  __syncthreads();
  if (threadIdx.x != 0) return of;
  ClassTriple all{0.F, 0.F, 0.F};
  for (const ClassTriple& warp : of_warps) {
    all.both += warp.both;
    all.prediction += warp.prediction;
    all.truth += warp.truth;
  }
  return all;
}

/// Grid: (blocks, images). `of_blocks`: (N,blocks,3K+1).
template <class T>
__global__ void sum_classes(const ClassVoxels<T> in, double* of_blocks) {
  using Softmax = typename ClassVoxels<T>::Softmax;
  const int64_t image = blockIdx.y, classes = in.of.classes;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kClassBlock + threadIdx.x;
  Softmax softmax[kVoxelsOfThread];
  float mask[kVoxelsOfThread], cross_entropy = 0.F;
  for (int i = 0; i < kVoxelsOfThread; ++i) {
    const int64_t voxel = first + i * kClassThreads;
    mask[i] = voxel < in.of.voxels ? in.mask(image, voxel) : 0.F;
    if (mask[i] == 0.F) continue;
    softmax[i] = in.softmax(image, voxel);
    cross_entropy += mask[i] * in.cross_entropy(image, voxel, softmax[i]);
  }
  double* own = of_blocks + (image * gridDim.x + blockIdx.x) * (3 * classes + 1);
  for (int64_t k = 0; k < classes; ++k) {
    ClassTriple sums{0.F, 0.F, 0.F};
    for (int i = 0; i < kVoxelsOfThread; ++i) {
      if (mask[i] == 0.F) continue;
      const int64_t voxel = first + i * kClassThreads;
      const float p = mask[i] * in.probability(in.logit(image, k, voxel), softmax[i]);
      const float t = mask[i] * in.truth(image, k, voxel);
      sums.both += p * t;
      sums.prediction += in.of.squared ? p * p : p;
      sums.truth += in.of.squared ? t * t : t;
    }
    sums = sum_block(sums);
    if (threadIdx.x == 0) {
      own[k] = static_cast<double>(sums.both);
      own[classes + k] = static_cast<double>(sums.prediction);
      own[2 * classes + k] = static_cast<double>(sums.truth);
    }
  }
  const ClassTriple last = sum_block({cross_entropy, 0.F, 0.F});
  if (threadIdx.x == 0) own[3 * classes] = static_cast<double>(last.both);
}

/// Grid: (3K+1, images), a warp each.
__global__ void sum_class_blocks(const CudaClassSums to, int64_t blocks) {
  const int64_t classes = to.classes.classes, image = blockIdx.y, column = blockIdx.x;
  const int64_t width = 3 * classes + 1;
  double sum = 0;
  for (int64_t block = threadIdx.x; block < blocks; block += kClassWarp)
    sum += to.of_blocks[(image * blocks + block) * width + column];
  for (int lane = kClassWarp / 2; lane > 0; lane /= 2) sum += __shfl_down_sync(~0U, sum, lane);
  if (threadIdx.x != 0) return;
  const auto result = static_cast<float>(sum);
  const int64_t place = image * classes + column % classes;
  if (column == 3 * classes)
    to.cross_entropy[image] = result;
  else
    (column < classes ? to.both : column < 2 * classes ? to.prediction : to.truth)[place] = result;
}

template <class T>
__global__ void class_gradients(const ClassVoxels<T> in, const CudaClassGrad of, T* grad) {
  const int64_t classes = in.of.classes, count = in.of.images * in.of.voxels;
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t at = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; at < count;
       at += step) {
    const int64_t image = at / in.of.voxels, voxel = at % in.of.voxels;
    const float mask = in.mask(image, voxel);
    const float* both = of.both == nullptr ? nullptr : of.both + image * classes;
    const float* prediction = of.prediction == nullptr ? nullptr : of.prediction + image * classes;
    const float cross_entropy = of.cross_entropy == nullptr ? 0.F : of.cross_entropy[image];
    const auto softmax = in.softmax(image, voxel);
    // The derivative by the probability, without the mask.
    const auto by_p = [&](int64_t k, float p, float t) {
      return (both == nullptr ? 0.F : both[k] * t) +
             (prediction == nullptr ? 0.F : prediction[k] * (in.of.squared ? 2.F * p : 1.F));
    };
    float mean = 0.F;
    for (int64_t k = 0; in.of.is_exclusive && k < classes; ++k) {
      const float p = in.probability(in.logit(image, k, voxel), softmax);
      mean += p * by_p(k, p, in.truth(image, k, voxel));
    }
    for (int64_t k = 0; k < classes; ++k) {
      const float p = in.probability(in.logit(image, k, voxel), softmax);
      const float t = in.truth(image, k, voxel);
      const float slope = in.of.is_exclusive ? p : p * (1.F - p);
      const float value = slope * (by_p(k, p, t) - mean) + cross_entropy * (p - t);
      grad[in.place(image, k, voxel)] = static_cast<T>(mask == 0.F ? 0.F : mask * value);
    }
  }
}

template <class T>
void run_class_sums(const CudaClassSums& task) {
  const CudaClasses& of = task.classes;
  const int64_t blocks = (of.voxels + kClassBlock - 1) / kClassBlock;
  const auto images = static_cast<unsigned>(of.images);
  launch(sum_classes<T>,
         dim3(static_cast<unsigned>(blocks), images),
         kClassThreads,
         ClassVoxels<T>(of),
         task.of_blocks);
  launch(sum_class_blocks,
         dim3(static_cast<unsigned>(3 * of.classes + 1), images),
         kClassWarp,
         task,
         blocks);
}

template <class T>
void run_class_grad(const CudaClassGrad& task) {
  const CudaClasses& of = task.classes;
  constexpr int64_t kMostBlocks = 1 << 16;
  const int64_t blocks = (of.images * of.voxels + kClassThreads - 1) / kClassThreads;
  launch(class_gradients<T>,
         static_cast<unsigned>(std::min(blocks, kMostBlocks)),
         kClassThreads,
         ClassVoxels<T>(of),
         task,
         static_cast<T*>(task.grad));
}

}  // namespace
}  // namespace cytra::ops::gpu

extern "C" void cytra_cuda_class_sums(const cytra::ops::gpu::CudaClassSums& task) {
  using namespace cytra::ops::gpu;
  const cytra::ops::OnDevice on_device(task.classes.device);
  if (task.classes.type == c10::ScalarType::BFloat16) return run_class_sums<c10::BFloat16>(task);
  if (task.classes.type == c10::ScalarType::Half) return run_class_sums<c10::Half>(task);
  run_class_sums<float>(task);
}

extern "C" void cytra_cuda_class_grad(const cytra::ops::gpu::CudaClassGrad& task) {
  using namespace cytra::ops::gpu;
  const cytra::ops::OnDevice on_device(task.classes.device);
  if (task.classes.type == c10::ScalarType::BFloat16) return run_class_grad<c10::BFloat16>(task);
  if (task.classes.type == c10::ScalarType::Half) return run_class_grad<c10::Half>(task);
  run_class_grad<float>(task);
}
