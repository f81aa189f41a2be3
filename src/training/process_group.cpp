#include "training/process_group.h"

#include <cstdlib>
#include <filesystem>

#include <dlfcn.h>
#include <fmt/format.h>

#include "base/error.h"

#define USE_C10D_GLOO  // else the header is empty
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

namespace cytra::training {

using c10d::ProcessGroupGloo;

c10::intrusive_ptr<c10d::Backend> make_gloo(const c10::intrusive_ptr<c10d::Store>& store,
                                            const Place& place,
                                            std::chrono::milliseconds timeout) {
  c10::intrusive_ptr<ProcessGroupGloo::Options> options;
  if (place.local_size == place.size && std::getenv("GLOO_SOCKET_IFNAME") == nullptr) {
    options = ProcessGroupGloo::Options::create(timeout);  // nothing leaves this machine
    options->devices.push_back(ProcessGroupGloo::createDeviceForHostname("127.0.0.1"));
  } else {
    options = ProcessGroupGloo::Options::create_default(timeout);
  }
  return c10::make_intrusive<ProcessGroupGloo>(
      store, static_cast<int>(place.rank), static_cast<int>(place.size), options);
}

c10::intrusive_ptr<c10d::Backend> make_nccl(const c10::intrusive_ptr<c10d::Store>& store,
                                            const Place& place,
                                            c10::Device device,
                                            std::chrono::milliseconds timeout) {
  Dl_info own{};  // the module lies beside this library
  dladdr(reinterpret_cast<void*>(&make_nccl), &own);
  const std::string library =
      (std::filesystem::path(own.dli_fname).parent_path() / "libcytra_nccl.so").string();
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* entry = handle == nullptr ? nullptr : dlsym(handle, kNcclEntry);
  if (entry == nullptr) {
    throw ConfigError(fmt::format(
        "trainer.devices: several GPUs need NCCL, which this build has not ({}); build it where "
        "the CUDA toolkit and nccl.h are, or use trainer.accelerator=cpu",
        dlerror()));
  }
  return c10::intrusive_ptr<c10d::Backend>::reclaim(reinterpret_cast<NcclEntry>(entry)(
      store, static_cast<int>(place.rank), static_cast<int>(place.size), device.index(), timeout));
}

}  // namespace cytra::training
