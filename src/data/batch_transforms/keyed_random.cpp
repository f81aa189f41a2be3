#include "data/batch_transforms/keyed_random.h"

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>

namespace cytra::data {
namespace {

constexpr int64_t kPart = 1 << 21;  // draws

/// Shifts as uint64: the shift of int64 keeps the sign, so the result is masked. (Multiplication
/// of int64 wraps as that of uint64.)
at::Tensor shifted(const at::Tensor& x, int64_t bits) {
  return x.bitwise_right_shift(bits).bitwise_and_((int64_t{1} << (64 - bits)) - 1);
}

/// Mixes x in place. Source: mix() in base/rng.cpp.
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

namespace {

/// The draws `begin` to `end` of each stream, as uniforms() returns them.
at::Tensor uniforms_of(const at::Tensor& numbers, int64_t begin, int64_t end) {
  const at::Tensor steps = at::arange(begin + 1, end + 1, numbers.options());
  const at::Tensor bits = mix(mix(numbers[1] + steps).bitwise_xor_(numbers[0]));
  return shifted(bits, 11).to(at::kDouble).mul_(0x1.0p-53);
}

/// Fills (spans, count) float64 by fill(draws, place), some draws at a time, as temporaries are
/// several times as large as the draws.
at::Tensor in_parts(const std::vector<Rng::Span>& spans,
                    int64_t count,
                    const at::Device& device,
                    const auto& fill) {
  const auto streams = std::ssize(spans);
  at::Tensor host = at::empty({2, streams, 1}, at::kLong);
  auto* value = host.mutable_data_ptr<int64_t>();
  for (const Rng::Span& span : spans) {
    value[streams] = static_cast<int64_t>(span.counter);
    *value++ = static_cast<int64_t>(span.key);
  }
  const at::Tensor numbers = to_device(host, device);
  const at::Tensor all = at::empty({streams, count}, numbers.options().dtype(at::kDouble));
  const int64_t part = std::max<int64_t>(2, kPart / std::max<int64_t>(1, streams) / 2 * 2);
  for (int64_t begin = 0; begin < count; begin += part) {
    const int64_t end = std::min(begin + part, count);
    fill(uniforms_of(numbers, begin, end), all.narrow(1, begin, end - begin));
  }
  return all;
}

}  // namespace

at::Tensor uniforms(const std::vector<Rng::Span>& spans, int64_t count, const at::Device& device) {
  return in_parts(spans, count, device, [](const at::Tensor& draws, const at::Tensor& place) {
    place.copy_(draws);
  });
}

at::Tensor normals(const std::vector<Rng::Span>& spans, int64_t count, const at::Device& device) {
  return normal_pairs(spans, 2 * count, device).unflatten(1, {count, 2}).select(2, 0);
}

at::Tensor normal_pairs(const std::vector<Rng::Span>& spans,
                        int64_t count,
                        const at::Device& device) {
  return in_parts(spans, count, device, [](const at::Tensor& draws, const at::Tensor& place) {
    const auto halves = [](const at::Tensor& x) { return x.unflatten(1, {x.size(1) / 2, 2}); };
    const at::Tensor pairs = halves(draws), values = halves(place);
    const at::Tensor radius = (1 - pairs.select(2, 0)).log_().mul_(-2).sqrt_();
    const at::Tensor angle = pairs.select(2, 1) * (2 * M_PI);
    values.select(2, 0).copy_(angle.cos().mul_(radius));
    values.select(2, 1).copy_(angle.sin_().mul_(radius));
  });
}

}  // namespace cytra::data
