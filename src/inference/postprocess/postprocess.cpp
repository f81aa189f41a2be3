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

std::unique_ptr<ops::RowStep> Postprocess::by_rows(Result& /*form*/,
                                                   std::vector<int64_t>& /*shape*/,
                                                   const std::string& /*folder*/) const {
  return nullptr;
}

void apply_named(const Postprocess& step, const std::function<void()>& part) {
  try {
    part();
  } catch (const ConfigError& error) {
    throw ConfigError(step.name + ": " + error.what());
  } catch (const DataError& error) {
    throw DataError(step.name + ": " + error.what());
  }
}

void apply_all(const PostprocessSteps& steps, Result& result) {
  for (const auto& step : steps) apply_named(*step, [&] { step->apply(result); });
}

}  // namespace cytra::inference
