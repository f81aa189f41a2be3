#include "perf/device_error.h"

#include <algorithm>
#include <exception>
#include <new>
#include <string_view>

#include <c10/util/Exception.h>
#include <fmt/format.h>

#include "base/error.h"
#include "base/strings.h"
#include "perf/device.h"

namespace cytra::perf {
namespace {

template <class Signs>
bool has_one_of(const std::string& text, const Signs& signs) {
  return std::any_of(std::begin(signs), std::end(signs), [&](const char* sign) {
    return text.find(sign) != std::string::npos;
  });
}

// As torch's allocators, CUDA, cuBLAS, cuDNN (an engine needs workspace), cuFFT and NCCL put it.
constexpr const char* kMemorySigns[] = {"can't allocate memory",
                                        "CUDA error: out of memory",
                                        "_ALLOC_FAILED",
                                        "_ALLOCATION_FAILED",
                                        "unable to find an engine",
                                        "'out of memory'"};

}  // namespace

bool is_out_of_memory(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr ||
      dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr)
    return true;
  const std::string what = error.what();
  return has_one_of(what, kMemorySigns) ||
         starts_with(what, "could not create a primitive");  // oneDNN, which says no more
}

void throw_device_error(const std::string& what) {
  const std::string line = split(what, '\n').front();
  const auto has = [&](const char* sign) { return what.find(sign) != std::string::npos; };
  if (has("device-side assert")) {
    throw DataError(
        "the GPU met an index beyond its range (its own message stands above): most likely a label "
        "that is no class; --check-data names the image, or trainer.accelerator=cpu");
  }
  if (has("no kernel image is available")) {
    throw ConfigError(
        "this GPU is too old or too new for LibTorch's CUDA libraries (no kernels for it; those of "
        "CUDA 13 need compute capability 7.5); build with another LibTorch (CYTRA_TORCH), or use "
        "trainer.accelerator=cpu");
  }
  if (has("driver version is insufficient"))
    throw ConfigError("the NVIDIA driver is too old for LibTorch's CUDA libraries; update it: " +
                      line);
  constexpr std::string_view kDeterministic = " does not have a deterministic implementation";
  if (const std::size_t end = what.find(kDeterministic); end != std::string::npos) {
    throw ConfigError(
        fmt::format("trainer.deterministic=true: {} has no deterministic form on this device; "
                    "trainer.deterministic=warn uses it all the same",
                    what.substr(0, end)));
  }
  if (has("CUDA error: uncorrectable"))
    throw IoError("the GPU failed: " + line + "; the kernel's log (Xid) may tell more");
  if (has("busy or unavailable"))
    throw IoError("the GPU is in use by another process alone: " + line + "; nvidia-smi shows it");
}

}  // namespace cytra::perf
