// What of torch's CUDA libraries answers the questions about devices, as if built for CUDA 13.0.
#include <ATen/detail/CUDAHooksInterface.h>

namespace at {
namespace {
struct StubHooks final : CUDAHooksInterface {
  explicit StubHooks(CUDAHooksArgs) {}
  bool hasCUDA() const override { return true; }
  DeviceIndex deviceCount() const override { return 2; }
  DeviceIndex getCurrentDevice() const override { return 0; }
  void init() const override {}
  long versionCUDART() const override { return 13000; }
};
C10_REGISTER_TYPED_CLASS(CUDAHooksRegistry, "CUDAHooks", StubHooks)
}  // namespace
}  // namespace at
