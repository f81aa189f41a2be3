#include "ops/conv/constant_weights.h"

namespace cytra::ops {
namespace {

thread_local ConstantWeights* active_weights = nullptr;

}  // namespace

ConstantWeights::Scope::Scope(ConstantWeights& weights)
    : before_(std::exchange(active_weights, &weights)) {}

ConstantWeights::Scope::~Scope() {
  active_weights = before_;
}

ConstantWeights* ConstantWeights::active() {
  return active_weights;
}

at::Tensor ConstantWeights::get(const at::Tensor& weight,
                                int64_t points,
                                const std::function<at::Tensor()>& prepare) {
  const std::lock_guard lock(mutex_);
  at::Tensor& prepared = prepared_[{weight.const_data_ptr(), points}];
  if (!prepared.defined()) prepared = prepare();
  return prepared;
}

}  // namespace cytra::ops
