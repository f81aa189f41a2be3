#include "nn/exported/function.h"

#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/strings.h"
#include "nn/exported/file.h"
#include "nn/exported/graph.h"
#include "nn/weights.h"

namespace cytra::nn {
namespace {

/// Throws: DataError where a tensor does not have the sides that are fixed in the file.
void expect_shape(const io::ExportedShape& shape,
                  const at::Tensor& input,
                  const std::string& name) {
  bool fits = std::ssize(shape.sides) == input.dim();
  for (std::size_t d = 0; fits && d < shape.sides.size(); ++d) {
    const int64_t side = input.size(static_cast<int64_t>(d));
    fits = shape.sides[d].fixed.value_or(side) == side;
  }
  if (fits) return;
  std::vector<std::string> sides;
  for (const io::ExportedSide& side : shape.sides)
    sides.push_back(side.fixed ? std::to_string(*side.fixed) : "any");
  throw DataError("the shape of its {} is ({}), got ({}); export it with dynamic shapes",
                  name,
                  join(sides, ","),
                  fmt::join(input.sizes(), ","));
}

}  // namespace

struct ExportedFunction::Impl {
  Impl(const std::string& path_of_file, std::vector<std::string> inputs, std::size_t least)
      : path(path_of_file), names(std::move(inputs)) {
    const ExportedFile file(path);
    naming_file(path, [&] {
      shapes = input_shapes(file.graph);
      if (shapes.size() < least || shapes.size() > names.size()) {
        throw DataError("forward() takes {} tensors, expected {}{}",
                        shapes.size(),
                        join(names, ", "),
                        least < names.size() ? fmt::format(", or the first {}", least) : "");
      }
      steps = std::make_unique<ExportedSteps>(
          file.graph, root, [&](const std::string& name) { return file.tensor(name); });
      root.register_module("constants", steps->constants());
      for (at::Tensor& parameter : root.parameters()) parameter.requires_grad_(false);
      root.eval();
    });
  }

  std::string path;
  std::vector<std::string> names;
  std::vector<io::ExportedShape> shapes;
  torch::nn::Module root;
  std::unique_ptr<ExportedSteps> steps;
  c10::Device device{c10::kCPU};
  std::mutex moving;
};

ExportedFunction::ExportedFunction(const std::string& path,
                                   std::vector<std::string> inputs,
                                   std::size_t least)
    : impl_(std::make_unique<Impl>(path, std::move(inputs), least)) {}
ExportedFunction::~ExportedFunction() = default;

std::size_t ExportedFunction::count() const {
  return impl_->shapes.size();
}

at::Tensor ExportedFunction::operator()(std::vector<at::Tensor> inputs) const {
  {
    const std::lock_guard lock(impl_->moving);
    const c10::Device device = inputs.at(0).device();
    if (device != std::exchange(impl_->device, device)) impl_->root.to(device);
  }
  return naming_file(impl_->path, [&] {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      expect_shape(impl_->shapes.at(i), inputs[i], impl_->names[i]);
      inputs[i] = inputs[i].to(scalar_type_of({impl_->shapes[i].dtype}, "of forward()"));
    }
    return impl_->steps->run(inputs).front();
  });
}

}  // namespace cytra::nn
