#pragma once
// The parts of which networks are made. Include only from .cpp files of nn, as nn/model.h.
#include <memory>
#include <string>
#include <vector>

#include "nn/call.h"

namespace cytra::nn {

using Sizes = std::vector<int64_t>;  // one number per spatial dimension

/// A module that makes one tensor of one.
struct Layer : torch::nn::Module {
  virtual at::Tensor forward(const at::Tensor& x) = 0;
};

/// Layers, one after the other. An activation right behind a norm is computed with it.
struct Sequence : Layer {
  Sequence() = default;
  /// They are called "0", "1", ...
  explicit Sequence(std::vector<std::shared_ptr<Layer>> layers);
  void add(const std::string& name, std::shared_ptr<Layer> layer);
  at::Tensor forward(const at::Tensor& x) override;

 private:
  std::vector<std::shared_ptr<Layer>> layers_;
};

/// `count` layers of one kind, each made with the arguments.
template <class Made, class... Arguments>
std::shared_ptr<Sequence> repeated(int64_t count, const Arguments&... arguments) {
  std::vector<std::shared_ptr<Layer>> layers;
  for (int64_t i = 0; i < count; ++i) layers.push_back(std::make_shared<Made>(arguments...));
  return std::make_shared<Sequence>(std::move(layers));
}

/// The module in which `name` is registered ("a.b" for "a.b.c"), made where there is none.
torch::nn::Module& parent_of(torch::nn::Module& root, const std::string& name);

/// Registers a module under a dotted name: a network can keep its blocks in plain lists, and still
/// have the parameter names of a nested network.
template <class Module>
std::shared_ptr<Module> put(torch::nn::Module& root,
                            const std::string& name,
                            std::shared_ptr<Module> module) {
  return parent_of(root, name).register_module(name.substr(name.rfind('.') + 1), std::move(module));
}
/// Registers a new module, which is made with the arguments.
template <class Module, class... Arguments>
std::shared_ptr<Module> put(torch::nn::Module& root,
                            const std::string& name,
                            Arguments&&... arguments) {
  return put(root, name, std::make_shared<Module>(std::forward<Arguments>(arguments)...));
}

/// Takes the last of the skips, which they no longer hold: its memory is free when it was used.
at::Tensor popped(std::vector<at::Tensor>& skips);

/// The product of all strides, per dimension: what sides must be multiples of.
Sizes product_of(const std::vector<Sizes>& strides);

/// One number for all dimensions, or one for each. Throws: ConfigError naming the option.
Sizes per_dimension(const Sizes& given, int64_t spatial_dims, const char* option);
/// per_dimension() for kernel sizes: they must be odd, or skip connections do not fit.
Sizes odd_per_dimension(const Sizes& given, int64_t spatial_dims, const char* option);

}  // namespace cytra::nn
