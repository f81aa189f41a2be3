#include "nn/blocks/layer.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "nn/blocks/layers.h"

namespace cytra::nn {
namespace {

/// Whether a layer is a dropout that drops nothing now, as in evaluation.
bool is_idle_dropout(Layer& layer) {
  const auto* const dropout = dynamic_cast<const Dropout*>(&layer);
  return dropout != nullptr && !dropout->is_dropping();
}

}  // namespace

Sequence::Sequence(std::vector<std::shared_ptr<Layer>> layers) {
  for (auto& layer : layers) add(std::to_string(layers_.size()), std::move(layer));
}

void Sequence::add(const std::string& name, std::shared_ptr<Layer> layer) {
  layers_.push_back(register_module(name, std::move(layer)));
}

at::Tensor Sequence::forward(const at::Tensor& input) {
  at::Tensor x = input;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    auto* norm = dynamic_cast<Norm*>(layers_[i].get());
    std::size_t next = i + 1;
    while (norm != nullptr && next < layers_.size() && is_idle_dropout(*layers_[next])) ++next;
    auto* activation =
        next < layers_.size() ? dynamic_cast<Activation*>(layers_[next].get()) : nullptr;
    if (norm != nullptr && activation != nullptr) {
      x = norm_act(*norm, *activation, std::move(x));
      i = next;
    } else {
      x = call(*layers_[i], x);
    }
  }
  return x;
}

torch::nn::Module& parent_of(torch::nn::Module& root, const std::string& name) {
  const std::size_t dot = name.find('.');
  if (dot == std::string::npos) return root;
  const std::string first = name.substr(0, dot);
  const auto children = root.named_children();
  const auto* const found = children.find(first);
  torch::nn::Module& child =
      found != nullptr ? **found
                       : *root.register_module(first, std::make_shared<torch::nn::Module>());
  return parent_of(child, name.substr(dot + 1));
}

at::Tensor popped(std::vector<at::Tensor>& skips) {
  at::Tensor last = std::move(skips.back());
  skips.pop_back();
  return last;
}

Sizes product_of(const std::vector<Sizes>& strides) {
  Sizes product(strides.at(0).size(), 1);
  for (const Sizes& stride : strides) {
    for (std::size_t d = 0; d < product.size(); ++d) product[d] *= stride[d];
  }
  return product;
}

Sizes per_dimension(const Sizes& given, int64_t spatial_dims, const char* option) {
  const auto dims = static_cast<std::size_t>(spatial_dims);
  if ((given.size() != 1 && given.size() != dims) || *std::ranges::min_element(given) < 1) {
    throw ConfigError(
        "{} takes positive numbers, one or one for each of the {} dimensions", option, dims);
  }
  return given.size() == dims ? given : Sizes(dims, given[0]);
}

Sizes odd_per_dimension(const Sizes& given, int64_t spatial_dims, const char* option) {
  for (const int64_t side : given) {
    if (side % 2 == 0) throw ConfigError("{} takes odd numbers, got {}", option, side);
  }
  return per_dimension(given, spatial_dims, option);
}

}  // namespace cytra::nn
