#include "data/datamodules/array_datamodule.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "config/checked.h"

namespace cytra::data {

ArrayDatamodule::ArrayDatamodule(std::map<Split, std::vector<Arrays>> arrays, LoaderOptions options)
    : options_(config::checked(std::move(options), "data")) {
  for (auto& [split, list] : arrays) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      Sample& sample = samples_[split].emplace_back();
      sample.id = fmt::format("{}[{}]", name_of(split), i);
      for (const auto& [key, tensor] : list[i]) {
        if (!tensor.defined() || !tensor.is_cpu() || tensor.is_complex() || tensor.numel() == 0 ||
            (tensor.dim() != 3 && tensor.dim() != 4)) {
          throw DataError(
              "{}: '{}' is {}, expected (C,H,W) or (C,D,H,W) of real numbers on the CPU",
              sample.id,
              key,
              tensor.defined() ? fmt::format("a tensor of {}", fmt::join(tensor.sizes(), "x"))
                               : "undefined");
        }
      }
      sample.tensors = std::move(list[i]);
    }
  }
}

std::vector<Sample> ArrayDatamodule::items(Split split) const {
  const auto found = samples_.find(split);
  if (found == samples_.end() || found->second.empty())
    throw ConfigError("no arrays were given for {}", name_of(split));
  return found->second;
}

}  // namespace cytra::data
