#pragma once
#include <cstdint>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

namespace cytra::device {

/// The bytes that this process can still allocate: on the host, or on a GPU (with what torch's
/// allocator keeps unused).
int64_t free_memory(c10::Device device);
/// Gives what the device's allocator keeps unused back to it.
void empty_cache(c10::Device device);
/// Copies `values` to the host and waits for them: from a GPU into page-locked memory, which is
/// several times as fast as Tensor::cpu().
at::Tensor to_host(const at::Tensor& values);
/// Copies `values` to the device, to a GPU through page-locked memory, without waiting for the
/// copy.
at::Tensor to_device(const at::Tensor& values, c10::Device device);
/// Allocates dense page-locked memory for as many values.
at::Tensor page_locked(const at::Tensor& like);

}  // namespace cytra::device
