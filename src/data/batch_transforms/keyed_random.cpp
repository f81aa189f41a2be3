#include "data/batch_transforms/keyed_random.h"

#include <cmath>

#include <ATen/ATen.h>

namespace cytra::data {
namespace {

/// int64 multiplication wraps as uint64's, and a shift that keeps the sign is masked.
at::Tensor shifted(const at::Tensor& x, int64_t bits) {
  return x.bitwise_right_shift(bits).bitwise_and_((int64_t{1} << (64 - bits)) - 1);
}

/// Writes into x. Source: mix() in base/rng.cpp.
at::Tensor mix(at::Tensor x) {
  x.add_(static_cast<int64_t>(0x9e3779b97f4a7c15u));
  x.bitwise_xor_(shifted(x, 30)).mul_(static_cast<int64_t>(0xbf58476d1ce4e5b9u));
  x.bitwise_xor_(shifted(x, 27)).mul_(static_cast<int64_t>(0x94d049bb133111ebu));
  return x.bitwise_xor_(shifted(x, 31));
}

}  // namespace

at::Tensor to_device(const at::Tensor& values, const at::Device& device) {
  return values.to(device, values.scalar_type(), /*non_blocking=*/true);
}

at::Tensor uniforms(const std::vector<Rng::Span>& spans, int64_t count, const at::Device& device) {
  at::Tensor host = at::empty({2, static_cast<int64_t>(spans.size()), 1}, at::kLong);
  auto* value = host.mutable_data_ptr<int64_t>();
  for (const Rng::Span& span : spans) {
    value[spans.size()] = static_cast<int64_t>(span.counter);
    *value++ = static_cast<int64_t>(span.key);
  }
  const at::Tensor numbers = to_device(host, device);
  const at::Tensor steps = at::arange(1, count + 1, numbers.options());
  const at::Tensor bits = mix(mix(numbers[1] + steps).bitwise_xor_(numbers[0]));
  return shifted(bits, 11).to(at::kDouble).mul_(0x1.0p-53);
}

at::Tensor normals(const std::vector<Rng::Span>& spans, int64_t count, const at::Device& device) {
  return normal_pairs(spans, 2 * count, device).unflatten(1, {count, 2}).select(2, 0);
}

at::Tensor normal_pairs(const std::vector<Rng::Span>& spans,
                        int64_t count,
                        const at::Device& device) {
  const at::Tensor pairs = uniforms(spans, count, device).unflatten(1, {count / 2, 2});
  const at::Tensor radius = (1 - pairs.select(2, 0)).log_().mul_(-2).sqrt_();
  const at::Tensor angle = pairs.select(2, 1) * (2 * M_PI);
  return at::stack({angle.cos() * radius, angle.sin() * radius}, 2).flatten(1);
}

}  // namespace cytra::data
