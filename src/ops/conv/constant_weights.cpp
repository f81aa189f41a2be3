#include "ops/conv/constant_weights.h"

#include <utility>

namespace cytra::ops {
namespace {

thread_local ConstantWeights* active_weights = nullptr;

}  // namespace

ConstantWeights::Scope::Scope(ConstantWeights& weights)
    : before_(std::exchange(active_weights, &weights)) {}

ConstantWeights::Scope::~Scope() {
  active_weights = before_;
}

ConstantWeights* ConstantWeights::active(const at::Tensor& weight, const ConvOptions& options) {
  return options.is_parameter && !weight.is_inference() ? active_weights : nullptr;
}

}  // namespace cytra::ops
