#include "data/image_tensor.h"

#include <cstring>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "base/error.h"

namespace cytra::data {
namespace {

at::ScalarType scalar_type(io::Dtype dtype) {
  switch (dtype) {
    case io::Dtype::u8:
      return at::kByte;
    case io::Dtype::i8:
      return at::kChar;
    case io::Dtype::u16:
      return at::kUInt16;
    case io::Dtype::i16:
      return at::kShort;
    case io::Dtype::u32:
      return at::kUInt32;
    case io::Dtype::i32:
      return at::kInt;
    case io::Dtype::f32:
      return at::kFloat;
    case io::Dtype::f64:
      return at::kDouble;
  }
  throw std::logic_error("unknown sample type");
}

}  // namespace

at::Tensor to_tensor(const io::Image& image, int64_t spatial_dims, const std::string& path) {
  const auto [c, z, y, x] = image.shape;
  if (spatial_dims == 2 && z != 1) {
    throw DataError(fmt::format(
        "{}: a stack of {} planes, but spatial_dims is 2; set spatial_dims=3", path, z));
  }
  auto* pixels = const_cast<unsigned char*>(image.pixels.data());
  const at::Tensor view =
      at::from_blob(pixels, {c, z, y, x}, at::TensorOptions(scalar_type(image.dtype)));
  // clone: the view does not own its memory
  const at::Tensor tensor = image.dtype == io::Dtype::f64 ? view.to(at::kFloat) : view.clone();
  return spatial_dims == 2 ? tensor.squeeze(1) : tensor;
}

io::Image to_image(const at::Tensor& tensor, io::Dtype dtype, const io::Geometry& geometry) {
  at::Tensor values = tensor.dim() == 3 ? tensor.unsqueeze(1) : tensor;
  values = values.to(at::kCPU).to(scalar_type(dtype)).contiguous();
  io::Image image;
  image.dtype = dtype;
  for (int64_t d = 0; d < 4; ++d) image.shape[static_cast<std::size_t>(d)] = values.size(d);
  image.geometry = geometry;
  image.pixels.resize(values.nbytes());
  std::memcpy(image.pixels.data(), values.const_data_ptr(), values.nbytes());
  return image;
}

}  // namespace cytra::data
