// libcytra_nccl.so: NCCL by c10d, loaded once training with several GPUs begins.
#define USE_C10D_NCCL  // else the header is empty
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include "training/processes/process_group.h"

extern "C" c10d::Backend* cytra_make_nccl(const c10::intrusive_ptr<c10d::Store>& store,
                                          int rank,
                                          int size,
                                          int device,
                                          std::chrono::milliseconds timeout) {
  using c10d::ProcessGroupNCCL;
  static_assert(std::is_same_v<decltype(&cytra_make_nccl), cytra::training::NcclEntry>);
  auto options = ProcessGroupNCCL::Options::create();
  // NCCL's watchdog ends the process without a message. Gloo's wait for the same step times out
  // earlier, with one.
  options->timeout = 2 * timeout + std::chrono::minutes(1);
  auto group = c10::make_intrusive<ProcessGroupNCCL>(store, rank, size, std::move(options));
  group->setBoundDeviceId(c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(device)));
  return group.release();
}
