#pragma once
// The means of communication. For processes.cpp.
#include <chrono>

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "training/processes/processes.h"

namespace cytra::training {

/// Gloo, for tensors on the CPU, and the sockets of its connections. Throws: c10::DistError
/// when a process did not connect.
c10::intrusive_ptr<c10d::Backend> make_gloo(const c10::intrusive_ptr<c10d::Store>& store,
                                            const ProcessPlace& place,
                                            std::chrono::milliseconds timeout,
                                            std::vector<int>& sockets);
/// Closes these sockets, so that operations that wait for them fail at once. Thread: any.
void shut_down(const std::vector<int>& sockets);
/// NCCL, out of libcytra_nccl.so. Throws: ConfigError when this build has none.
c10::intrusive_ptr<c10d::Backend> make_nccl(const c10::intrusive_ptr<c10d::Store>& store,
                                            const ProcessPlace& place,
                                            c10::Device device,
                                            std::chrono::milliseconds timeout);

/// What libcytra_nccl.so exports as kNcclEntry.
using NcclEntry = c10d::Backend* (*)(const c10::intrusive_ptr<c10d::Store>& store,
                                     int rank,
                                     int size,
                                     int device,
                                     std::chrono::milliseconds timeout);
constexpr char kNcclEntry[] = "cytra_make_nccl";

}  // namespace cytra::training
