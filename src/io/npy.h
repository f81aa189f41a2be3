#pragma once
// Arrays of NumPy that are no images: any number of axes.
#include <cstdint>
#include <string>
#include <vector>

#include "io/image.h"

namespace cytra::io {

struct NpyArray {
  std::vector<int64_t> shape;
  Image values;  // all, in C's order, as an image (1,1,1,N)
};
/// Reads an array of numbers. Throws: what open_image() throws; DataError for Fortran's order.
NpyArray read_npy(const std::string& path);
/// The bytes of a file of values, in C's order, as an array of this shape.
std::string npy_bytes(const std::vector<int64_t>& shape, const Image& values);

}  // namespace cytra::io
