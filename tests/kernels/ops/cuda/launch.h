#pragma once
// CUDA's threads on a CPU, in place of src/ops/cuda/launch.h: blocks come one after the other, the
// threads of a block take turns at what they wait for. What CUDA refuses is refused, too.
// AddressSanitizer sees device memory, which is the host's, and shared memory, which is static.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <utility>
#include <vector>

#include <c10/macros/Macros.h>
#include <ucontext.h>

// An assertion of the device ends the kernel; here it is an exception of the launch.
#undef CUDA_KERNEL_ASSERT
#define CUDA_KERNEL_ASSERT(condition) emulated::has_failed |= !(condition)
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __shared__ static

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};
inline dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace emulated {

constexpr unsigned kWarp = 32, kMostThreads = 1024;

/// A thread of the block that runs.
struct Fiber {
  ucontext_t context{};
  std::vector<char> stack = std::vector<char>(1 << 16);
  bool is_done = false;
};
inline std::vector<Fiber> fibers;
inline ucontext_t scheduler;
inline std::function<void()> body;
inline bool has_failed;  // CUDA_KERNEL_ASSERT
inline bool has_moved;   // in this turn: a thread has ended, or a wait is over

inline unsigned number_in_block() {
  return threadIdx.y * blockDim.x + threadIdx.x;
}

/// What the threads of a block, or of a warp, wait at.
struct Barrier {
  unsigned count = 0, arrived = 0, turn = 0;
  void wait() {
    const unsigned mine = turn;
    if (++arrived == count) {
      arrived = 0;
      ++turn;
      has_moved = true;
      return;
    }
    while (turn == mine) swapcontext(&fibers[number_in_block()].context, &scheduler);
  }
};
inline Barrier block_barrier, warp_barriers[kMostThreads / kWarp];
inline double lanes[kMostThreads];

/// The value that another lane of the warp gives.
inline double from_lane(double value, unsigned lane) {
  const unsigned number = number_in_block(), first = number / kWarp * kWarp;
  Barrier& warp = warp_barriers[number / kWarp];
  lanes[number] = value;
  warp.wait();
  const double other = lane < kWarp ? lanes[first + lane] : value;
  warp.wait();
  return other;
}

inline void begin_fiber() {
  body();
  fibers[number_in_block()].is_done = true;
  has_moved = true;
}

/// body() by every thread of a block.
inline void run_block() {
  const unsigned count = blockDim.x * blockDim.y;
  fibers.resize(std::max<std::size_t>(fibers.size(), count));
  block_barrier = {count};
  for (Barrier& warp : warp_barriers) warp = {std::min(kWarp, count)};
  for (unsigned number = 0; number < count; ++number) {
    Fiber& fiber = fibers[number];
    fiber.is_done = false;
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.data();
    fiber.context.uc_stack.ss_size = fiber.stack.size();
    fiber.context.uc_link = &scheduler;
    makecontext(&fiber.context, begin_fiber, 0);
  }
  for (unsigned left = count; left > 0;) {
    has_moved = false;
    left = 0;
    for (unsigned number = 0; number < count; ++number) {
      if (fibers[number].is_done) continue;
      threadIdx = dim3(number % blockDim.x, number / blockDim.x);
      swapcontext(&scheduler, &fibers[number].context);
      left += fibers[number].is_done ? 0 : 1;
    }
    if (left > 0 && !has_moved) throw std::logic_error("threads wait for threads that have ended");
  }
}

}  // namespace emulated

inline unsigned long long atomicAdd(unsigned long long* place, unsigned long long value) {
  return std::exchange(*place, *place + value);
}
inline void __syncthreads() {
  emulated::block_barrier.wait();
}
template <class T>
T __shfl_down_sync(unsigned, T value, unsigned delta) {
  const unsigned lane = emulated::number_in_block() % emulated::kWarp;
  return static_cast<T>(emulated::from_lane(value, lane + delta));
}
template <class T>
T __shfl_sync(unsigned, T value, unsigned lane) {
  return static_cast<T>(emulated::from_lane(value, lane));
}

namespace cytra::ops {

struct OnDevice {
  explicit OnDevice(int) {}
};

template <class Kernel, class... Args>
void launch(Kernel kernel, dim3 grid, dim3 block, const Args&... args) {
  const unsigned count = block.x * block.y;
  if (grid.x == 0 || grid.y == 0 || grid.y > 65535 || count == 0 ||
      count > emulated::kMostThreads || (count > emulated::kWarp && count % emulated::kWarp != 0))
    throw std::invalid_argument("a grid that CUDA refuses, or with a warp that is not whole");
  gridDim = grid;
  blockDim = block;
  emulated::body = [&] { kernel(args...); };
  for (unsigned y = 0; y < grid.y; ++y) {
    for (unsigned x = 0; x < grid.x; ++x) {
      blockIdx = dim3(x, y);
      emulated::run_block();
    }
  }
  if (std::exchange(emulated::has_failed, false)) throw std::domain_error("device-side assert");
}

}  // namespace cytra::ops
