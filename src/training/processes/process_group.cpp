#include "training/processes/process_group.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include <netinet/in.h>
#include <sys/socket.h>

#include "base/error.h"
#include "base/shared_library.h"

#define USE_C10D_GLOO  // else the header is empty
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

namespace cytra::training {

using c10d::ProcessGroupGloo;

namespace {

/// The connections of this process, except those with the store at `port`.
std::vector<int> connections(uint16_t port) {
  std::vector<int> all;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int file = std::atoi(entry.path().filename().c_str());
    sockaddr_storage own{}, other{};
    socklen_t own_size = sizeof own, other_size = sizeof other;
    if (::getsockname(file, reinterpret_cast<sockaddr*>(&own), &own_size) != 0 ||
        ::getpeername(file, reinterpret_cast<sockaddr*>(&other), &other_size) != 0 ||
        (own.ss_family != AF_INET && own.ss_family != AF_INET6))
      continue;
    const auto port_of = [](const sockaddr_storage& address) {  // at one place in both families
      return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
    };
    if (port_of(own) != port && port_of(other) != port) all.push_back(file);
  }
  std::ranges::sort(all);
  return all;
}

}  // namespace

void shut_down(const std::vector<int>& sockets) {
  for (const int socket : sockets) ::shutdown(socket, SHUT_RDWR);
}

c10::intrusive_ptr<c10d::Backend> make_gloo(const c10::intrusive_ptr<c10d::Store>& store,
                                            const ProcessPlace& place,
                                            std::chrono::milliseconds timeout,
                                            std::vector<int>& sockets) {
  c10::intrusive_ptr<ProcessGroupGloo::Options> options;
  if (place.local_size == place.size && std::getenv("GLOO_SOCKET_IFNAME") == nullptr) {
    options = ProcessGroupGloo::Options::create(timeout);  // nothing leaves this machine
    options->devices.push_back(ProcessGroupGloo::createDeviceForHostname("127.0.0.1"));
  } else {
    options = ProcessGroupGloo::Options::create_default(timeout);
  }
  // Gloo can't interrupt a wait for a process that exists but does not answer, so shut_down() needs
  // its sockets.
  const std::vector<int> before = connections(place.port);
  c10::intrusive_ptr<ProcessGroupGloo> gloo;
  try {
    gloo = c10::make_intrusive<ProcessGroupGloo>(
        store, static_cast<int>(place.rank), static_cast<int>(place.size), options);
  } catch (const c10::DistError&) {
    throw;
  } catch (const c10::Error& error) {  // no type of its own
    C10_THROW_ERROR(DistBackendError, error.what_without_backtrace());
  }
  const std::vector<int> after = connections(place.port);
  std::set_difference(
      after.begin(), after.end(), before.begin(), before.end(), std::back_inserter(sockets));
  return gloo;
}

c10::intrusive_ptr<c10d::Backend> make_nccl(const c10::intrusive_ptr<c10d::Store>& store,
                                            const ProcessPlace& place,
                                            c10::Device device,
                                            std::chrono::milliseconds timeout) {
  SharedLibrary library(path_beside(&make_nccl, "libcytra_nccl.so"), SharedLibrary::Symbols::local);
  const auto entry = library.find<NcclEntry>(kNcclEntry);
  if (entry == nullptr) {
    throw ConfigError(
        "trainer.devices: several GPUs need NCCL, which this build has not ({}); build it where "
        "the CUDA toolkit and nccl.h are, or use trainer.accelerator=cpu",
        library.problem());
  }
  return c10::intrusive_ptr<c10d::Backend>::reclaim(entry(
      store, static_cast<int>(place.rank), static_cast<int>(place.size), device.index(), timeout));
}

}  // namespace cytra::training
