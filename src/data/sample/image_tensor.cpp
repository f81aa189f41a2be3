#include "data/sample/image_tensor.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <ATen/ATen.h>

#include "base/error.h"
#include "data/sample/sample.h"

namespace cytra::data {
namespace {

/// Whether an image of float64 holds whole numbers alone, and such that float32 does not hold.
bool are_large_numbers(const io::Image& image) {
  if (image.dtype != io::Dtype::f64) return false;
  const auto* values = reinterpret_cast<const double*>(image.pixels.data());
  double largest = 0;
  for (int64_t i = 0; i < image.count(); ++i) {
    if (values[i] != std::floor(values[i])) return false;
    largest = std::max(largest, std::abs(values[i]));
  }
  return largest >= (1 << 24) && largest < 9e15;
}

}  // namespace

at::ScalarType scalar_type(io::Dtype dtype) {
  constexpr at::ScalarType kTypes[] = {at::kByte,
                                       at::kChar,
                                       at::kUInt16,
                                       at::kShort,
                                       at::kUInt32,
                                       at::kInt,
                                       at::kFloat,
                                       at::kDouble};  // in the order of Dtype
  return kTypes[static_cast<std::size_t>(dtype)];
}

void check_planes(int64_t planes, int64_t spatial_dims, const std::string& path) {
  if ((spatial_dims == 3) == (planes > 1)) return;
  if (planes == 1) {
    throw DataError(path +
                    ": a plane, but spatial_dims is 3, expected a stack; set spatial_dims=2, or "
                    "LoadImaged's allow_planes=true for stacks of one");
  }
  throw DataError(
      "{}: a stack of {} planes, but spatial_dims is 2; set spatial_dims=3, or axes=TYX when they "
      "are time points, or each an image of its own",
      path,
      planes);
}

void check_finite(const at::Tensor& tensor, const std::string& path) {
  if (tensor.scalar_type() != at::kFloat || at::isfinite(tensor.sum()).item<bool>()) return;
  const auto bad = at::isfinite(tensor).logical_not().sum().item<int64_t>();
  if (bad == 0) return;
  throw DataError(path + ": " + std::to_string(bad) + " of " + std::to_string(tensor.numel()) +
                  " values are NaN or infinite; expected finite intensities; data.fill_nan=0 puts "
                  "0 in their place");
}

void make_finite(at::Tensor& image, std::optional<double> fill, const std::string& path) {
  if (!fill) return check_finite(image, path);
  if (image.scalar_type() == at::kFloat)
    image.masked_fill_(at::isfinite(image).logical_not(), *fill);
}

at::Tensor read_tensor(const ImageRequest& image) {
  at::Tensor tensor = to_tensor(image.reader->read(image.region), image.spatial_dims, image.path);
  make_finite(tensor, image.fill_nan, image.path);
  return tensor;
}

at::Tensor to_tensor(io::Image image, int64_t spatial_dims, const std::string& path) {
  const auto [c, z, y, x] = image.shape;
  if (spatial_dims == 2) check_planes(z, spatial_dims, path);  // of a stack, this may be a crop
  const bool are_labels = are_large_numbers(image);
  auto* pixels = new std::vector<unsigned char>(std::move(image.pixels));  // the tensor's now
  const at::Tensor tensor = at::from_blob(
      pixels->data(),
      {c, z, y, x},
      [pixels](void*) { delete pixels; },
      at::TensorOptions(scalar_type(image.dtype)));
  const at::Tensor values =
      image.dtype == io::Dtype::f64 ? tensor.to(are_labels ? at::kLong : at::kFloat) : tensor;
  return spatial_dims == 2 ? values.squeeze(1) : values;
}

io::Image to_image(const at::Tensor& tensor, io::Dtype dtype, const io::Geometry& geometry) {
  const at::Tensor values = tensor.dim() == 3 ? tensor.unsqueeze(1) : tensor;
  io::Image image;
  image.dtype = dtype;
  for (int64_t d = 0; d < 4; ++d) image.shape[static_cast<std::size_t>(d)] = values.size(d);
  image.geometry = geometry;
  if (values.is_cpu() && values.scalar_type() == scalar_type(dtype) && values.is_contiguous()) {
    const auto* from = static_cast<const unsigned char*>(values.const_data_ptr());
    image.pixels.assign(from, from + values.nbytes());
    return image;
  }
  image.pixels.resize(image.bytes());
  at::from_blob(image.pixels.data(), values.sizes(), at::TensorOptions(scalar_type(dtype)))
      .copy_(values);
  return image;
}

}  // namespace cytra::data
