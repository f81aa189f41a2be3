#include "device/cuda_dnn.h"

#include <ATen/detail/CUDAHooksInterface.h>
#include <fmt/format.h>

#include "base/warn_once.h"

namespace cytra::device {
namespace {

struct Trouble {
  int64_t first, last;  // versions
  const char* what;
};
// Source: pytorch#163539, pytorch#167024, pytorch#166643.
constexpr Trouble kTroubles[]{{90800, 91001, "gives wrong results of 3D convolutions in bfloat16"},
                              {91002,
                               91500,
                               "has a kernel for 3D convolutions that is wrong, and those in 16 "
                               "bits need several times the time and memory"}};

}  // namespace

std::string trouble_of_cudnn_in_3d(int64_t version) {
  for (const Trouble& one : kTroubles) {
    if (version < one.first || version > one.last) continue;
    return fmt::format("cuDNN {}.{}.{} {}: install a newer one (torch 2.11 brings 9.19)",
                       version / 10000,
                       version / 100 % 100,
                       version % 100,
                       one.what);
  }
  return "";
}

void warn_of_cudnn_in_3d() {
  const auto& hooks = at::detail::getCUDAHooks();
  if (!hooks.hasCuDNN()) return;
  if (const std::string trouble = trouble_of_cudnn_in_3d(hooks.versionRuntimeCuDNN());
      !trouble.empty())
    warn_once(trouble);
}

}  // namespace cytra::device
