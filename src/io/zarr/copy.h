#pragma once
// Copies boxes of samples from one memory layout to another; for zarr*.cpp only.
#include <string>

#include "io/zarr/array.h"

namespace cytra::io {

/// Copies a box of `size` from samples `strides` apart (0: the same sample again) and converts
/// them. Throws: DataError `place: ...` for a 64-bit value that does not fit into 32 bits.
void copy_box(const ZarrType& type,
              std::size_t rank,
              const Extent& size,
              const unsigned char* from,
              const Extent& from_strides,
              unsigned char* into,
              const Extent& into_strides,
              const std::string& place);
/// Swaps the bytes of each sample.
void swap_bytes(unsigned char* data, std::size_t bytes, std::size_t sample_bytes);
/// The strides in a chunk of this shape in C order.
Extent c_strides(const Extent& shape, std::size_t rank);

}  // namespace cytra::io
