#pragma once
// How operations go through tensors of one shape, whatever their strides.
#include "tensor.h"

namespace at {

/// Runs work(offsets, strides, count) for lines of elements of up to four tensors that have one
/// shape: where each tensor's line begins and how it goes on, in elements. Lines of dense tensors
/// are long; several threads take them side by side.
using Four = std::array<int64_t, 4>;
void walk(const std::vector<const Tensor*>& tensors,
          const std::function<void(const Four& offsets, const Four& strides, int64_t count)>& work);

/// Calls work(T{}) with the element type.
auto with_type(ScalarType type, const auto& work) {
  switch (type) {
    case kByte:
      return work(uint8_t{});
    case kChar:
      return work(int8_t{});
    case kShort:
      return work(int16_t{});
    case kInt:
      return work(int32_t{});
    case kLong:
      return work(int64_t{});
    case kFloat:
      return work(float{});
    case kDouble:
      return work(double{});
    case kBool:
      return work(bool{});
    case kUInt16:
      return work(uint16_t{});
    case kUInt32:
      return work(uint32_t{});
    default:
      throw Error(std::string("an operation on ") + toString(type));
  }
}
/// Also float16 and bfloat16, for what only moves or converts elements.
auto with_any_type(ScalarType type, const auto& work) {
  if (type == kHalf) return work(Half{});
  if (type == kBFloat16) return work(BFloat16{});
  return with_type(type, work);
}

/// out[i] = f(a[i]), and of two and three tensors.
template <class Out, class In, class F>
void map(const Tensor& out, const Tensor& a, const F& f) {
  Out* to = out.mutable_data_ptr<Out>();
  const In* from = a.const_data_ptr<In>();
  walk({&out, &a}, [&](const Four& at, const Four& by, int64_t n) {
    Out* o = to + at[0];
    const In* x = from + at[1];
    if (by[0] == 1 && by[1] == 1) {
      for (int64_t i = 0; i < n; ++i) o[i] = f(x[i]);
    } else {
      for (int64_t i = 0; i < n; ++i) o[i * by[0]] = f(x[i * by[1]]);
    }
  });
}
template <class Out, class In, class F>
void map(const Tensor& out, const Tensor& a, const Tensor& b, const F& f) {
  Out* to = out.mutable_data_ptr<Out>();
  const In *from = a.const_data_ptr<In>(), *other = b.const_data_ptr<In>();
  walk({&out, &a, &b}, [&](const Four& at, const Four& by, int64_t n) {
    Out* o = to + at[0];
    const In *x = from + at[1], *y = other + at[2];
    if (by[0] == 1 && by[1] == 1 && by[2] == 1) {
      for (int64_t i = 0; i < n; ++i) o[i] = f(x[i], y[i]);
    } else if (by[0] == 1 && by[1] == 1 && by[2] == 0) {
      const In one = *y;
      for (int64_t i = 0; i < n; ++i) o[i] = f(x[i], one);
    } else {
      for (int64_t i = 0; i < n; ++i) o[i * by[0]] = f(x[i * by[1]], y[i * by[2]]);
    }
  });
}

/// The type of a result: a whole tensor's type counts more than that of a single value of the same
/// kind.
ScalarType common_type(const Tensor& a, const Tensor& b);
ScalarType common_type(const Tensor& a, const Scalar& b);
/// The shape to which both are expanded.
std::vector<int64_t> common_shape(IntArrayRef a, IntArrayRef b);

}  // namespace at
