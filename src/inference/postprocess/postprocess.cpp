#include "inference/postprocess/postprocess.h"

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

}  // namespace cytra::inference
