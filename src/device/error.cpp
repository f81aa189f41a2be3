#include "device/error.h"

#include <algorithm>
#include <exception>
#include <new>
#include <string_view>
#include <system_error>

#include <c10/util/Exception.h>

#include "base/error.h"
#include "base/strings.h"
#include "device/device.h"

namespace cytra::device {
namespace {

bool has_one_of(const std::string& text, const auto& signs) {
  return std::any_of(std::begin(signs), std::end(signs), [&](const char* sign) {
    return text.find(sign) != std::string::npos;
  });
}

// The messages of torch's allocators, CUDA, cuBLAS, cuDNN (an engine needs workspace), cuFFT and
// NCCL.
constexpr const char* kMemorySigns[] = {"can't allocate memory",
                                        "CUDA error: out of memory",
                                        "_ALLOC_FAILED",
                                        "_ALLOCATION_FAILED",
                                        "unable to find an engine",
                                        "'out of memory'"};

[[noreturn]] void throw_memory_error(const std::string& what) {
  throw MemoryError(
      "out of memory: {}; try a smaller data.batch_size, patch or inference_args.sw_batch_size",
      what);
}

}  // namespace

bool is_out_of_memory(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr ||
      dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr)
    return true;
  const std::string what = error.what();
  // oneDNN's message has no more detail; that of a descriptor says that there is no such operation.
  return has_one_of(what, kMemorySigns) ||
         (what.starts_with("could not create a primitive") &&
          !what.starts_with("could not create a primitive descriptor"));
}

void throw_device_error(const std::string& what) {
  const std::string line = split(what, '\n').front();
  const auto has = [&](const char* sign) { return what.find(sign) != std::string::npos; };
  if (has("device-side assert")) {
    throw DataError(
        "the GPU met an index beyond its range (its own message stands above): in a training most "
        "likely a label that is not a class, of which --check-data names the image; elsewhere "
        "trainer.accelerator=cpu names the operation");
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
        "trainer.deterministic=true: {} has no deterministic form on this device; "
        "trainer.deterministic=warn uses it all the same",
        what.substr(0, end));
  }
  if (has("CUDA error: uncorrectable"))
    throw IoError("the GPU failed: " + line + "; the kernel's log (Xid) may tell more");
  if (has("busy or unavailable"))
    throw IoError("another process has the GPU for itself alone: " + line +
                  "; nvidia-smi shows it");
}

void rethrow_as_ours() {
  try {
    throw;
  } catch (const c10::Error& error) {
    const std::string message = split(error.what_without_backtrace(), '\n').front();
    if (is_out_of_memory(error)) {
      constexpr std::string_view kAsked = "you tried to allocate ";
      const std::size_t asked = message.find(kAsked);
      if (asked == std::string::npos) throw_memory_error(message);
      throw_memory_error(format_bytes(std::atof(message.c_str() + asked + kAsked.size())) +
                         " more were needed");
    }
    throw_device_error(error.what_without_backtrace());
    if (message.find("Class values must be") != std::string::npos) {
      throw DataError("a target holds class numbers beyond model.out_channels (or below 0): " +
                      message);
    }
    throw std::runtime_error(message);
  } catch (const std::system_error& error) {
    if (error.code() != std::errc::resource_unavailable_try_again) throw;
    throw MemoryError(
        "out of memory for one more thread; raise the limit (ulimit -v, ulimit -u), or lower "
        "data.num_workers and performance.num_threads");
  } catch (const std::exception& error) {
    if (is_out_of_memory(error)) throw_memory_error(error.what());
    throw;
  }
}

}  // namespace cytra::device
