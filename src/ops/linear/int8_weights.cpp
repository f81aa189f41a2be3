#include "ops/linear/int8_weights.h"

#include <optional>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/cpu/Utils.h>
#include <ATen/native/quantized/PackedParams.h>

namespace cytra::ops {
namespace {

thread_local Int8Weights* active_int8 = nullptr;

/// Rounds each row by its largest value.
at::Tensor rounded_rows(const at::Tensor& weight) {
  const at::Tensor scales =
      weight.abs().amax(1).to(at::kDouble).div_(127).clamp_min_(1e-12);  // a row of zeros
  return at::quantize_per_channel(
      weight, scales, at::zeros_like(scales, at::kLong), /*axis=*/0, at::kQInt8);
}

}  // namespace

c10::intrusive_ptr<LinearPackedParamsBase> int8_packed(const at::Tensor& weight,
                                                       const at::Tensor& bias) {
  static const auto prepack = c10::Dispatcher::singleton()
                                  .findSchemaOrThrow("quantized::linear_prepack", "")
                                  .typed<c10::intrusive_ptr<LinearPackedParamsBase>(
                                      at::Tensor, std::optional<at::Tensor>)>();
  const auto given = bias.defined() ? std::optional(bias.to(at::kFloat)) : std::nullopt;
  return prepack.call(rounded_rows(weight.to(at::kFloat).contiguous()), given);
}

at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  if (active_int8 != nullptr) return active_int8->linear(x, weight, bias);
  return at::linear(x, weight, bias);
}

Int8Weights::Scope::Scope(Int8Weights& weights) : before_(std::exchange(active_int8, &weights)) {}

Int8Weights::Scope::~Scope() {
  active_int8 = before_;
}

Int8Weights::Int8Weights() = default;
Int8Weights::~Int8Weights() = default;

int64_t Int8Weights::count() const {
  return std::ssize(packed_);
}

at::Tensor Int8Weights::linear(const at::Tensor& x,
                               const at::Tensor& weight,
                               const at::Tensor& bias) {
  // Without VNNI, sums of two products of 8 bits saturate: there inputs have 7.
  static const bool reduces_range = !at::cpu::is_avx512_vnni_supported();
  static const auto dynamic = c10::Dispatcher::singleton()
                                  .findSchemaOrThrow("quantized::linear_dynamic", "")
                                  .typed<at::Tensor(at::Tensor, const Packed&, bool)>();
  const Packed packed = packed_.get({weight, bias}, 0, [&] { return int8_packed(weight, bias); });
  return dynamic.call(x.to(at::kFloat).contiguous(), packed, reduces_range).to(x.scalar_type());
}

}  // namespace cytra::ops
