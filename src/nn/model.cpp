#include "nn/model.h"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/jit/frontend/tracer.h>

#include "base/error.h"
#include "device/cuda_dnn.h"
#include "nn/blocks/layers.h"

namespace cytra::nn {
namespace {

/// The memory format, of images and weights, in which channels come last.
at::MemoryFormat channels_last_format(const Model& model) {
  return model.spatial_dims() == 2 ? at::MemoryFormat::ChannelsLast
                                   : at::MemoryFormat::ChannelsLast3d;
}

}  // namespace

/// The image in the model's memory format, after checking its shape.
at::Tensor Model::checked(const at::Tensor& image) const {
  const std::vector<int64_t> sides =
      image.sizes().slice(std::min<std::size_t>(2, image.sizes().size())).vec();
  if (std::ssize(sides) != spatial_dims() || image.size(1) != in_channels()) {
    throw DataError("the model takes (N,{},{}), got ({})",
                    in_channels(),
                    spatial_dims() == 2 ? "H,W" : "D,H,W",
                    fmt::join(image.sizes(), ","));
  }
  if (const std::vector<int64_t> fixed = fixed_size(); !fixed.empty() && sides != fixed) {
    throw DataError(
        "the model takes only images of ({}), got ({}); set patch_shape and roi_size to it, or its "
        "img_size to the patch",
        fmt::join(fixed, ","),
        fmt::join(sides, ","));
  }
  const std::vector<int64_t> divisors = divisor();
  for (std::size_t d = 0; d < sides.size(); ++d) {
    if (sides[d] % divisors[d] != 0) {
      throw DataError(
          "the model takes sides that are multiples of ({}), got ({}); choose another patch or roi "
          "size",
          fmt::join(divisors, ","),
          fmt::join(sides, ","));
    }
  }
  if (!channels_last) return image;
  // An image of one channel fits every memory format. torch then takes channels first, also for
  // the first convolution's features, unless the strides say otherwise. A trace loses the strides.
  if (image.size(1) == 1 && !torch::jit::tracer::isTracing())
    return image.contiguous().squeeze(1).unsqueeze(-1).movedim(-1, 1);
  return image.contiguous(channels_last_format(*this));
}

at::Tensor Model::features(const at::Tensor& /*image*/) {
  throw std::logic_error("features: the model has no last_layer()");
}

std::vector<std::string> Model::foreign_batch_norms() const {
  std::vector<std::string> names;
  for (const auto& module : named_modules()) {
    if (dynamic_cast<const Norm*>(module.value().get()) == nullptr &&
        module.value()->named_buffers(false).contains("running_mean"))
      names.push_back(module.key());
  }
  return names;
}

at::Tensor Model::operator()(const at::Tensor& image) {
  return call(*this, checked(image));
}

std::vector<at::Tensor> Model::all(const at::Tensor& image) {
  const at::Tensor input = checked(image);
  Watcher* const watching = watcher;
  if (watching != nullptr) watching->begin(*this, input);
  std::vector<at::Tensor> outputs = forward_all(input);
  if (watching != nullptr) watching->end(outputs.front());
  return outputs;
}

void place(Model& model, c10::Device device, bool on_tensor_cores) {
  model.to(device);
  if (device.is_cuda() && model.spatial_dims() == 3) device::warn_of_cudnn_in_3d();
  model.channels_last = model.settings.channels_last.value_or(device.is_cpu() || on_tensor_cores);
  const auto format =
      model.channels_last ? channels_last_format(model) : at::MemoryFormat::Contiguous;
  for (at::Tensor& parameter : model.parameters()) {
    if (parameter.dim() == model.spatial_dims() + 2)
      parameter.set_data(parameter.contiguous(format));
  }
}

void cast(Model& model, at::ScalarType type) {
  const auto change = [type](at::Tensor& tensor) {
    if (tensor.is_floating_point()) tensor.set_data(tensor.to(type));
  };
  for (at::Tensor& parameter : model.parameters()) change(parameter);
  for (at::Tensor& buffer : model.buffers()) change(buffer);
}

int64_t count_parameters(const Model& model) {
  int64_t count = 0;
  for (const at::Tensor& parameter : model.parameters()) count += parameter.numel();
  return count;
}

}  // namespace cytra::nn
