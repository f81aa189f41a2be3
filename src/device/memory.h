#pragma once
#include <cstdint>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

namespace cytra::device {

/// Bytes that this process can still take: of the host, or of a CUDA device (with what torch's
/// allocator keeps unused).
int64_t free_memory(c10::Device device);
/// Gives what the device's allocator keeps unused back to it.
void empty_cache(c10::Device device);
/// `values` on the host, there when it returns: from a GPU into page-locked memory, which is
/// several times as fast as what Tensor::cpu() takes.
at::Tensor to_host(const at::Tensor& values);

}  // namespace cytra::device
