#include "inference/postprocess.h"

#include <ATen/core/Tensor.h>

#include "base/error.h"
#include "inference/postprocess/step.h"

namespace cytra::inference {

PostprocessSteps make_postprocess(const config::Node& list) {
  PostprocessSteps steps;
  for (const config::Node& node : list.list) {
    steps.push_back(make<Postprocess>(node));
    steps.back()->name = Registry<Postprocess>::instance().components().name_of(node);
  }
  return steps;
}

void apply_all(const PostprocessSteps& steps, Result& result) {
  for (const auto& step : steps) {
    try {
      step->apply(result);
    } catch (const ConfigError& error) {
      throw ConfigError(step->name + ": " + error.what());
    } catch (const DataError& error) {
      throw DataError(step->name + ": " + error.what());
    }
  }
}

std::vector<double> spacing_of(const Result& result) {
  const auto& spacing = result.geometry.spacing_um;
  const auto dims = static_cast<std::size_t>(result.values.dim()) - 1;
  std::vector<double> known(spacing.end() - static_cast<std::ptrdiff_t>(dims), spacing.end());
  for (const double step : known) {
    if (step <= 0) return {};
  }
  return known;
}

}  // namespace cytra::inference
