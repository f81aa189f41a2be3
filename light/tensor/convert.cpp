// Copies, conversions, and elements by their places.
#include <numeric>

#include "walk.h"

namespace at {

using Sizes = std::vector<int64_t>;

const Tensor& Tensor::copy_(const Tensor& source, bool /*non_blocking*/) const {
  const Tensor from = source.expand(sizes());
  with_any_type(scalar_type(), [&](auto to_type) {
    using To = decltype(to_type);
    with_any_type(from.scalar_type(), [&](auto from_type) {
      using From = decltype(from_type);
      if constexpr (std::is_same_v<To, From>) {
        map<To, From>(*this, from, [](From x) { return x; });
      } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To> &&
                           !std::is_same_v<To, bool>) {
        // As torch: through int64, beyond a type's range its lowest bits.
        map<To, From>(*this, from, [](From x) { return static_cast<To>(static_cast<int64_t>(x)); });
      } else if constexpr (!std::is_arithmetic_v<To> || !std::is_arithmetic_v<From>) {
        map<To, From>(*this, from, [](From x) { return static_cast<To>(static_cast<float>(x)); });
      } else {
        map<To, From>(*this, from, [](From x) { return static_cast<To>(x); });
      }
    });
  });
  return *this;
}

const Tensor& Tensor::fill_(const Scalar& value) const {
  with_any_type(scalar_type(), [&](auto type) {
    using T = decltype(type);
    const T one = value.to<T>();
    T* to = mutable_data_ptr<T>();
    walk({this}, [&](const Four& at, const Four& by, int64_t n) {
      for (int64_t i = 0; i < n; ++i) to[at[0] + i * by[0]] = one;
    });
  });
  return *this;
}

Tensor Tensor::clone(MemoryFormat /*format*/) const {
  return empty(sizes(), options()).copy_(*this);
}
Tensor Tensor::contiguous(MemoryFormat format) const {
  if (is_contiguous(format)) return *this;
  if (format == MemoryFormat::Contiguous) return clone();
  Sizes order(static_cast<std::size_t>(dim())), back = order;
  std::iota(order.begin(), order.end(), 0);
  std::rotate(order.begin() + 1, order.begin() + 2, order.end());
  for (std::size_t i = 0; i < order.size(); ++i)
    back[static_cast<std::size_t>(order[i])] = static_cast<int64_t>(i);
  return permute(order).clone().permute(back);
}
Tensor empty(IntArrayRef sizes, const TensorOptions& options, std::optional<MemoryFormat> format) {
  const Tensor made = empty(sizes, options);
  if (format != MemoryFormat::ChannelsLast && format != MemoryFormat::ChannelsLast3d) return made;
  std::vector<int64_t> strides = made.strides().vec();
  int64_t next = sizes[1];  // channels lie side by side
  strides[1] = 1;
  for (std::size_t d = sizes.size(); d-- > 2;) {
    strides[d] = next;
    next *= sizes[d];
  }
  strides[0] = next;
  return made.as_strided(sizes.vec(), strides, 0);
}
Tensor Tensor::to(ScalarType type, bool /*non_blocking*/, bool copy) const {
  return type == scalar_type() && !copy ? *this : empty(sizes(), type).copy_(*this);
}

Tensor Tensor::flip(IntArrayRef dims) const {
  // The result is written backwards.
  Tensor made = empty(sizes(), options());
  Sizes strides = made.strides().vec();
  int64_t offset = 0;
  for (const int64_t d : dims) {
    const std::size_t at = place(d);
    offset += (size(d) - 1) * strides[at];
    strides[at] = -strides[at];
  }
  if (numel() > 0) made.as_strided(sizes().vec(), strides, offset).copy_(*this);
  return made;
}

Tensor rot90(const Tensor& x, int64_t times, IntArrayRef dims) {
  switch ((times % 4 + 4) % 4) {
    case 1:
      return x.flip({dims[1]}).transpose(dims[0], dims[1]).contiguous();
    case 2:
      return x.flip(dims);
    case 3:
      return x.flip({dims[0]}).transpose(dims[0], dims[1]).contiguous();
    default:
      return x.clone();
  }
}

Tensor cat(const std::vector<Tensor>& parts, int64_t d) {
  if (parts.empty()) throw Error("no tensors to join");
  std::vector<Tensor> kept;
  for (const Tensor& part : parts)
    if (part.dim() != 1 || part.numel() > 0) kept.push_back(part);
  if (kept.empty()) return parts.front();
  ScalarType type = kept.front().scalar_type();
  Sizes shape = kept.front().sizes().vec();
  const auto at = static_cast<std::size_t>(d < 0 ? d + kept.front().dim() : d);
  shape.at(at) = 0;
  for (const Tensor& part : kept) {
    shape[at] += part.size(d);
    if (part.scalar_type() != type)
      type = common_type(empty({1}, type), empty({1}, part.options()));
  }
  const Tensor made = empty(shape, type);
  int64_t next = 0;
  for (const Tensor& part : kept) {
    const Tensor place = made.narrow(d, next, part.size(d));
    if (place.sizes() != part.sizes()) throw Error("tensors to join that don't fit");
    place.copy_(part);
    next += part.size(d);
  }
  return made;
}
Tensor stack(const std::vector<Tensor>& parts, int64_t d) {
  std::vector<Tensor> higher;
  for (const Tensor& part : parts) higher.push_back(part.unsqueeze(d));
  return cat(higher, d);
}

std::vector<Tensor> meshgrid(const std::vector<Tensor>& axes, const std::string& /*"ij"*/) {
  Sizes shape;
  for (const Tensor& axis : axes) shape.push_back(axis.numel());
  std::vector<Tensor> grids;
  for (std::size_t d = 0; d < axes.size(); ++d) {
    Sizes own(axes.size(), 1);
    own[d] = shape[d];
    grids.push_back(axes[d].reshape(own).expand(shape));
  }
  return grids;
}

Tensor Tensor::repeat(IntArrayRef times) const {
  Tensor result = *this;
  while (result.dim() < static_cast<int64_t>(times.size())) result = result.unsqueeze(0);
  for (std::size_t d = 0; d < times.size(); ++d)
    result = cat(std::vector<Tensor>(static_cast<std::size_t>(times[d]), result),
                 static_cast<int64_t>(d));
  return result;
}
Tensor Tensor::repeat_interleave(int64_t times, std::optional<int64_t> d) const {
  return repeat_interleave(full({d ? size(*d) : numel()}, times, kLong), d);
}
Tensor Tensor::repeat_interleave(const Tensor& times, std::optional<int64_t> d) const {
  const Tensor from = d ? *this : flatten(), counts = times.to(kLong).contiguous();
  std::vector<int64_t> index;
  for (int64_t i = 0; i < counts.numel(); ++i)
    index.insert(index.end(), static_cast<std::size_t>(counts.const_data_ptr<int64_t>()[i]), i);
  return from.index_select(d.value_or(0), tensor(index, kLong));
}

Tensor Tensor::index_select(int64_t d, const Tensor& index) const {
  const Tensor places = index.to(kLong).contiguous();
  Sizes shape = sizes().vec();
  shape[place(d)] = places.numel();
  const Tensor made = empty(shape, options());
  for (int64_t i = 0; i < places.numel(); ++i) {
    const int64_t from = places.const_data_ptr<int64_t>()[i];
    if (from < 0) throw Error("an index below 0");
    made.select(d, i).copy_(select(d, from));
  }
  return made;
}

Tensor Tensor::gather(int64_t d, const Tensor& index) const {
  Tensor made = empty(index.sizes(), options());
  const int64_t by = stride(d), length = size(d);
  Sizes strides = this->strides().vec();
  strides[place(d)] = 0;  // the index says where along this one
  const Tensor lines = as_strided(index.sizes().vec(), strides, view_of().offset);
  with_any_type(scalar_type(), [&](auto type) {
    using T = decltype(type);
    T* to = made.mutable_data_ptr<T>();
    const T* from = lines.const_data_ptr<T>();
    const int64_t* places = index.const_data_ptr<int64_t>();
    walk({&made, &lines, &index}, [&](const Four& at, const Four& steps, int64_t n) {
      for (int64_t i = 0; i < n; ++i) {
        const int64_t place = places[at[2] + i * steps[2]];
        if (place < 0 || place >= length) throw Error("an index beyond the tensor");
        to[at[0] + i * steps[0]] = from[at[1] + i * steps[1] + place * by];
      }
    });
  });
  return made;
}

Tensor Tensor::masked_select(const Tensor& mask) const {
  const Sizes shape = common_shape(sizes(), mask.sizes());
  const Tensor from = expand(shape).contiguous(), chosen = mask.expand(shape).contiguous();
  const bool* is_chosen = chosen.const_data_ptr<bool>();
  const int64_t count = std::count(is_chosen, is_chosen + chosen.numel(), true);
  const Tensor made = empty({count}, options());
  with_any_type(scalar_type(), [&](auto type) {
    using T = decltype(type);
    T* to = made.mutable_data_ptr<T>();
    const T* value = from.const_data_ptr<T>();
    for (int64_t i = 0; i < from.numel(); ++i)
      if (is_chosen[i]) *to++ = value[i];
  });
  return made;
}

const Tensor& Tensor::masked_fill_(const Tensor& mask, const Scalar& value) const {
  const Tensor chosen = mask.expand(sizes());
  with_any_type(scalar_type(), [&](auto type) {
    using T = decltype(type);
    const T one = value.to<T>();
    T* to = mutable_data_ptr<T>();
    const bool* is_chosen = chosen.const_data_ptr<bool>();
    walk({this, &chosen}, [&](const Four& at, const Four& by, int64_t n) {
      for (int64_t i = 0; i < n; ++i)
        if (is_chosen[at[1] + i * by[1]]) to[at[0] + i * by[0]] = one;
    });
  });
  return *this;
}

Tensor Tensor::nonzero() const {
  const Tensor chosen = ne(0).contiguous();
  const bool* is_chosen = chosen.const_data_ptr<bool>();
  const int64_t count = std::count(is_chosen, is_chosen + chosen.numel(), true);
  const Tensor made = empty({count, dim()}, kLong);
  int64_t* to = made.mutable_data_ptr<int64_t>();
  for (int64_t i = 0; i < chosen.numel(); ++i) {
    if (!is_chosen[i]) continue;
    int64_t rest = i;
    for (int64_t d = dim() - 1; d >= 0; --d) {
      to[d] = rest % size(d);
      rest /= size(d);
    }
    to += dim();
  }
  return made;
}

Tensor constant_pad_nd(const Tensor& x, IntArrayRef pad, const Scalar& value) {
  Sizes shape = x.sizes().vec();
  for (std::size_t i = 0; i < pad.size() / 2; ++i)
    shape[shape.size() - 1 - i] += pad[2 * i] + pad[2 * i + 1];
  const Tensor made = full(shape, value, x.options());
  Tensor inside = made, from = x;
  for (std::size_t i = 0; i < pad.size() / 2; ++i) {
    const int64_t d = x.dim() - 1 - static_cast<int64_t>(i), before = pad[2 * i];
    const int64_t skip = std::max<int64_t>(0, -before), begin = std::max<int64_t>(0, before);
    const int64_t count = std::min(from.size(d) - skip, inside.size(d) - begin);
    inside = inside.narrow(d, begin, count);
    from = from.narrow(d, skip, count);
  }
  inside.copy_(from);
  return made;
}

}  // namespace at
