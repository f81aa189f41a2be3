#include "nn/model.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "config/registry.h"

namespace cytra::nn {

at::Tensor Model::operator()(const at::Tensor& image) {
  const std::vector<int64_t> sides =
      image.sizes().slice(std::min<std::size_t>(2, image.sizes().size())).vec();
  if (static_cast<int64_t>(sides.size()) != spatial_dims() || image.size(1) != in_channels()) {
    throw DataError(fmt::format("the model takes (N,{},{}), got ({})",
                                in_channels(),
                                spatial_dims() == 2 ? "H,W" : "D,H,W",
                                fmt::join(image.sizes(), ",")));
  }
  const std::vector<int64_t> divisors = divisor();
  for (std::size_t d = 0; d < sides.size(); ++d) {
    if (sides[d] % divisors[d] != 0) {
      throw DataError(
          fmt::format("the model takes sides that are multiples of ({}), got ({}); choose another "
                      "patch or roi size",
                      fmt::join(divisors, ","),
                      fmt::join(sides, ",")));
    }
  }
  if (!channels_last) return call(*this, image);
  return call(*this,
              image.contiguous(spatial_dims() == 2 ? at::MemoryFormat::ChannelsLast
                                                   : at::MemoryFormat::ChannelsLast3d));
}

namespace {

void use_channels_last(Model& model) {
  model.channels_last = true;
  const auto format =
      model.spatial_dims() == 2 ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::ChannelsLast3d;
  for (at::Tensor& parameter : model.parameters()) {
    if (parameter.dim() == model.spatial_dims() + 2)
      parameter.set_data(parameter.contiguous(format));
  }
}

}  // namespace

std::shared_ptr<Model> make_model(const config::Node& node) {
  std::shared_ptr<Model> model = make<Model>(node);
  if (node.get<bool>("channels_last", false)) use_channels_last(*model);
  model->gradient_checkpointing = node.get<bool>("gradient_checkpointing", false);
  return model;
}

void place_model(Model& model, const config::Node& node, c10::Device device) {
  model.to(device);
  const config::Node* layout = node.find_direct("channels_last");
  if (device.is_cpu() && layout != nullptr && layout->is_null()) use_channels_last(model);
}

int64_t count_parameters(const Model& model) {
  int64_t count = 0;
  for (const at::Tensor& parameter : model.parameters()) count += parameter.numel();
  return count;
}

}  // namespace cytra::nn
