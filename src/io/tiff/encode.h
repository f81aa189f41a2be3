#pragma once
// Encodes the blocks of a TIFF: values of tags, bytes, and blocks of smaller levels; for
// write.cpp.
#include <cstdint>
#include <string>
#include <vector>

#include "io/image.h"

namespace cytra::io {

// The values of the tags.
uint16_t sample_format(Dtype dtype);
uint16_t compression_of(const WriteOptions& options);
uint16_t predictor_of(Dtype dtype, const WriteOptions& options);

/// The bytes of a block in a file; `pixels` are changed. Throws: IoError.
std::string encode(std::vector<unsigned char>& pixels,
                   int64_t width,
                   int64_t height,
                   Dtype dtype,
                   const WriteOptions& options);

/// Halves `height` x `width` pixels, rounded up, whose rows are `row` bytes apart in both images:
/// to the mean of each 2 x 2, or for labels to the first.
void halve(Dtype dtype,
           bool is_labels,
           const unsigned char* from,
           int64_t height,
           int64_t width,
           std::size_t row,
           unsigned char* into);

}  // namespace cytra::io
