#pragma once
#include <optional>

#include <ATen/core/Tensor.h>

#include "io/image.h"

namespace cytra::data {

at::ScalarType scalar_type(io::Dtype dtype);
/// Makes a tensor (C,Y,X) for spatial_dims 2, (C,Z,Y,X) for 3, in the type on file (float64 as
/// float32). The pixels of an image that is moved in are not copied. Throws: DataError when a
/// stack is read as 2D.
at::Tensor to_tensor(io::Image image, int64_t spatial_dims, const std::string& path);
/// Checks the number of planes of a whole image. Throws: DataError for a stack when spatial_dims
/// is 2, for a plane when it is 3.
void check_planes(int64_t planes, int64_t spatial_dims, const std::string& path);
/// The wanted part of an image that is not read yet. Reading it throws DataError, also for values
/// that are NaN or infinite.
struct ImageRequest;
at::Tensor read_tensor(const ImageRequest& image);
void check_finite(const at::Tensor& image, const std::string& path);
/// Puts `fill` in place of values that are NaN or infinite. Without it, throws: DataError.
void make_finite(at::Tensor& image, std::optional<double> fill, const std::string& path);
/// Makes an image of (C,Y,X) or (C,Z,Y,X) values of any type, converted to `dtype`, the type on
/// disk.
io::Image to_image(const at::Tensor& tensor, io::Dtype dtype, const io::Geometry& geometry);

}  // namespace cytra::data
