#pragma once
#include <cstdint>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

namespace cytra::device {

/// Bytes that this process can still take: of the host, or of a GPU (with what torch's allocator
/// keeps unused).
int64_t free_memory(c10::Device device);
/// Gives what the device's allocator keeps unused back to it.
void empty_cache(c10::Device device);
/// `values` on the host, there when it returns: from a GPU into page-locked memory, which is
/// several times as fast as what Tensor::cpu() takes.
at::Tensor to_host(const at::Tensor& values);
/// `values` on the device, to a GPU through page-locked memory: nobody waits for the copy.
at::Tensor to_device(const at::Tensor& values, c10::Device device);
/// Page-locked memory for as many values, dense.
at::Tensor page_locked(const at::Tensor& like);

}  // namespace cytra::device
