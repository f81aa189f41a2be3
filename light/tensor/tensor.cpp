// Memory, and views of it.
#include "tensor.h"

#include <cstdlib>
#include <numeric>

#include "walk.h"

namespace c10 {
extern thread_local std::shared_ptr<MemoryReportingInfoBase> memory_reporter;
}

namespace at {
namespace {

using Sizes = std::vector<int64_t>;

Sizes dense_strides(IntArrayRef sizes) {
  Sizes strides(sizes.size(), 1);
  for (std::size_t d = sizes.size(); d-- > 1;)
    strides[d - 1] = strides[d] * std::max<int64_t>(1, sizes[d]);
  return strides;
}

void report(int64_t bytes) {
  if (c10::memory_reporter) c10::memory_reporter->reportMemoryUsage(nullptr, bytes, 0, 0, kCPU);
}

/// A place among `dims`, which may be counted from the end.
int64_t place_of(int64_t d, int64_t dims) {
  const int64_t place = d < 0 ? d + dims : d;
  if (place < 0 || place >= std::max<int64_t>(1, dims))
    throw Error("dimension " + std::to_string(d) + " of a tensor of " + std::to_string(dims));
  return place;
}

/// Puts the length in the place of a -1.
Sizes whole_shape(IntArrayRef sizes, int64_t numel) {
  Sizes shape = sizes.vec();
  int64_t product = 1;
  for (const int64_t size : shape) product *= size == -1 ? 1 : size;
  for (int64_t& size : shape)
    if (size == -1) size = product == 0 ? 0 : numel / product;
  if (multiply_integers(shape) != numel)
    throw Error("a tensor of " + std::to_string(numel) + " values has no such shape");
  return shape;
}

/// The strides of another shape of the same elements; none: they need a copy.
std::optional<Sizes> strides_for(const Tensor& x, const Sizes& shape) {
  if (x.numel() == 0) return dense_strides(shape);
  Sizes strides(shape.size());
  int64_t d = x.dim() - 1;
  auto next = static_cast<int64_t>(shape.size()) - 1;
  while (d >= 0 || next >= 0) {
    while (d >= 0 && x.size(d) == 1) --d;
    while (next >= 0 && shape[static_cast<std::size_t>(next)] == 1)
      strides[static_cast<std::size_t>(next--)] = 1;
    if (d < 0 || next < 0) break;
    // Dimensions that lie densely in each other make a run, which the new shape may divide.
    int64_t run = x.size(d), stride = x.stride(d), made = 1;
    while (d > 0 && (x.size(d - 1) == 1 || x.stride(d - 1) == stride * run)) run *= x.size(--d);
    while (next >= 0 && (made < run || shape[static_cast<std::size_t>(next)] == 1)) {
      const auto n = static_cast<std::size_t>(next--);
      strides[n] = stride * made;
      made *= shape[n];
    }
    if (made != run) return {};
    --d;
  }
  return strides;
}

}  // namespace

std::size_t Tensor::place(int64_t d) const {
  const int64_t found = place_of(d, dim());
  if (dim() == 0) throw Error("a size of a single value");
  return static_cast<std::size_t>(found);
}

void* Tensor::mutable_data_ptr() const {
  return static_cast<char*>(view_of().block->data) + view_of().offset * element_size();
}
void* Tensor::typed(std::size_t bytes) const {
  if (static_cast<int64_t>(bytes) != element_size())
    throw Error(std::string("values of another type, not of ") + toString(scalar_type()));
  return mutable_data_ptr();
}

Scalar Tensor::item() const {
  if (numel() != 1) throw Error("one value of a tensor of " + std::to_string(numel()));
  return with_any_type(scalar_type(), [&](auto type) -> Scalar {
    using T = decltype(type);
    const T value = *const_data_ptr<T>();
    if constexpr (std::is_arithmetic_v<T>)
      return value;
    else
      return static_cast<float>(value);
  });
}

bool Tensor::is_contiguous(MemoryFormat format) const {
  if (numel() == 0) return true;
  Sizes order(static_cast<std::size_t>(dim()));
  std::iota(order.begin(), order.end(), 0);
  if (format == MemoryFormat::ChannelsLast || format == MemoryFormat::ChannelsLast3d) {
    if (dim() != (format == MemoryFormat::ChannelsLast ? 4 : 5)) return false;
    std::rotate(order.begin() + 1, order.begin() + 2, order.end());
  }
  int64_t expected = 1;
  for (std::size_t i = order.size(); i-- > 0;) {
    if (size(order[i]) != 1 && stride(order[i]) != expected) return false;
    expected *= size(order[i]);
  }
  return true;
}

Tensor empty(IntArrayRef sizes, const TensorOptions& options) {
  for (const int64_t size : sizes)
    if (size < 0) throw Error("a tensor of negative size");
  const int64_t bytes = multiply_integers(sizes) * elementSize(options.type);
  constexpr std::size_t kAlign = 64;
  void* data = nullptr;
  const auto room = (static_cast<std::size_t>(bytes) + kAlign) / kAlign * kAlign;
  if (::posix_memalign(&data, kAlign, room) != 0) {
    throw OutOfMemoryError("can't allocate memory: you tried to allocate " + std::to_string(bytes) +
                           " bytes");
  }
  report(bytes);
  const auto free = [bytes](void* of) {
    report(-bytes);
    std::free(of);
  };
  const auto block = std::make_shared<Block>(data, free, static_cast<std::size_t>(bytes));
  return Tensor(View{block, options.type, 0, sizes.vec(), dense_strides(sizes)});
}

Tensor from_blob(void* data,
                 IntArrayRef sizes,
                 const std::function<void(void*)>& free,
                 const TensorOptions& options) {
  const auto bytes = static_cast<std::size_t>(multiply_integers(sizes) * elementSize(options.type));
  return Tensor(View{std::make_shared<Block>(data, free, bytes),
                     options.type,
                     0,
                     sizes.vec(),
                     dense_strides(sizes)});
}
Tensor from_blob(void* data, IntArrayRef sizes, const TensorOptions& options) {
  return from_blob(
      data, sizes, [](void*) {}, options);
}

Tensor full(IntArrayRef sizes, const Scalar& value, const TensorOptions& options) {
  const Tensor made = empty(sizes, options);
  made.fill_(value);
  return made;
}

Tensor arange(const Scalar& begin, const Scalar& end, const TensorOptions& options) {
  const auto count = static_cast<int64_t>(end.to<double>() - begin.to<double>());
  const Tensor made = empty({count}, kDouble);
  double* to = made.mutable_data_ptr<double>();
  for (int64_t i = 0; i < count; ++i) to[i] = begin.to<double>() + static_cast<double>(i);
  return made.to(options);
}

Tensor eye(int64_t n, const TensorOptions& options) {
  const Tensor made = zeros({n, n}, options);
  made.as_strided({n}, {n + 1}, 0).fill_(1);
  return made;
}

Tensor Tensor::as_strided(Sizes sizes, Sizes strides, int64_t offset) const {
  return Tensor(View{view_of().block, scalar_type(), offset, std::move(sizes), std::move(strides)});
}

Tensor Tensor::slice(int64_t d,
                     std::optional<int64_t> begin,
                     std::optional<int64_t> end,
                     int64_t step) const {
  const int64_t length = size(d);
  const auto within = [&](int64_t i) {
    return std::clamp<int64_t>(i < 0 ? i + length : i, 0, length);
  };
  const int64_t from = within(begin.value_or(0));
  const int64_t to = std::max(from, end ? within(*end) : length);
  Sizes sizes = this->sizes().vec(), strides = this->strides().vec();
  const std::size_t at = place(d);
  const int64_t offset = view_of().offset + from * strides[at];
  sizes[at] = (to - from + step - 1) / step;
  strides[at] *= step;
  return as_strided(std::move(sizes), std::move(strides), offset);
}

Tensor Tensor::narrow(int64_t d, int64_t begin, int64_t count) const {
  const int64_t from = begin < 0 ? begin + size(d) : begin;
  if (from < 0 || count < 0 || from + count > size(d))
    throw Error("a part that ends beyond the tensor");
  return slice(d, from, from + count);
}

Tensor Tensor::select(int64_t d, int64_t index) const {
  const int64_t i = index < 0 ? index + size(d) : index;
  if (i < 0 || i >= size(d)) throw Error("an index beyond the tensor: " + std::to_string(index));
  Sizes sizes = this->sizes().vec(), strides = this->strides().vec();
  const auto at = static_cast<std::ptrdiff_t>(place(d));
  const int64_t offset = view_of().offset + i * strides[static_cast<std::size_t>(at)];
  sizes.erase(sizes.begin() + at);
  strides.erase(strides.begin() + at);
  return as_strided(std::move(sizes), std::move(strides), offset);
}

Tensor Tensor::view(IntArrayRef sizes) const {
  Sizes shape = whole_shape(sizes, numel());
  std::optional<Sizes> strides = strides_for(*this, shape);
  if (!strides) throw Error("a view that needs a copy");
  return as_strided(std::move(shape), std::move(*strides), view_of().offset);
}
Tensor Tensor::view(ScalarType type) const {
  if (elementSize(type) != element_size()) throw Error("a view of values of another size");
  View other = view_of();
  other.type = type;
  return Tensor(std::move(other));
}
Tensor Tensor::reshape(IntArrayRef sizes) const {
  const Sizes shape = whole_shape(sizes, numel());
  return strides_for(*this, shape) ? view(shape) : contiguous().view(shape);
}

Tensor Tensor::flatten(int64_t from, int64_t to) const {
  if (dim() == 0) return view({1});
  const auto first = static_cast<std::size_t>(place_of(from, dim()));
  const auto last = static_cast<std::size_t>(place_of(to, dim()));
  Sizes shape = sizes().vec();
  int64_t length = 1;
  for (std::size_t d = first; d <= last; ++d) length *= shape[d];
  shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(first) + 1,
              shape.begin() + static_cast<std::ptrdiff_t>(last) + 1);
  shape[first] = length;
  return reshape(shape);
}

Tensor Tensor::expand(IntArrayRef wanted) const {
  Sizes shape = wanted.vec(), strides(shape.size(), 0);
  const int64_t more = static_cast<int64_t>(shape.size()) - dim();
  if (more < 0) throw Error("a tensor that is expanded to fewer dimensions");
  for (int64_t d = 0; d < dim(); ++d) {
    const auto to = static_cast<std::size_t>(d + more);
    if (shape[to] == -1) shape[to] = size(d);
    if (size(d) == shape[to])
      strides[to] = stride(d);
    else if (size(d) != 1)
      throw Error("sizes that don't fit: " + std::to_string(size(d)) + " and " +
                  std::to_string(shape[to]));
  }
  return as_strided(std::move(shape), std::move(strides), view_of().offset);
}

Tensor Tensor::permute(IntArrayRef order) const {
  Sizes sizes, strides;
  for (const int64_t d : order) {
    sizes.push_back(size(d));
    strides.push_back(stride(d));
  }
  return as_strided(std::move(sizes), std::move(strides), view_of().offset);
}

Tensor Tensor::transpose(int64_t a, int64_t b) const {
  Sizes order(static_cast<std::size_t>(dim()));
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[place(a)], order[place(b)]);
  return permute(order);
}

Tensor Tensor::squeeze(int64_t d) const {
  return dim() == 0 || size(d) != 1 ? *this : select(d, 0);
}

Tensor Tensor::unsqueeze(int64_t d) const {
  const int64_t at = place_of(d, dim() + 1);
  Sizes sizes = this->sizes().vec(), strides = this->strides().vec();
  const int64_t stride =
      at == dim() ? 1 : sizes[static_cast<std::size_t>(at)] * strides[static_cast<std::size_t>(at)];
  sizes.insert(sizes.begin() + at, 1);
  strides.insert(strides.begin() + at, stride);
  return as_strided(std::move(sizes), std::move(strides), view_of().offset);
}

std::vector<Tensor> Tensor::unbind(int64_t d) const {
  std::vector<Tensor> parts;
  for (int64_t i = 0; i < size(d); ++i) parts.push_back(select(d, i));
  return parts;
}
std::vector<Tensor> Tensor::split(int64_t length, int64_t d) const {
  std::vector<Tensor> parts;
  for (int64_t i = 0; i < size(d); i += length)
    parts.push_back(narrow(d, i, std::min(length, size(d) - i)));
  return parts;
}
std::vector<Tensor> Tensor::chunk(int64_t parts, int64_t d) const {
  return split(std::max<int64_t>(1, (size(d) + parts - 1) / parts), d);
}

void walk(
    const std::vector<const Tensor*>& tensors,
    const std::function<void(const Four& offsets, const Four& strides, int64_t count)>& work) {
  const Tensor& first = *tensors.front();
  struct Axis {
    int64_t size;
    Four by;
  };
  std::vector<Axis> axes;  // the innermost last
  for (int64_t d = 0; d < first.dim(); ++d) {
    if (first.size(d) == 0) return;
    if (first.size(d) == 1) continue;
    Axis axis{first.size(d), {}};
    for (std::size_t t = 0; t < tensors.size(); ++t) axis.by[t] = tensors[t]->stride(d);
    axes.push_back(axis);
  }
  if (axes.empty()) return work({}, {1, 1, 1, 1}, 1);
  std::ranges::stable_sort(axes, [](const Axis& a, const Axis& b) {
    return a.by[0] > b.by[0];  // in the order of the result's memory
  });
  std::vector<Axis> joined;
  for (const Axis& axis : axes) {
    bool fits = !joined.empty();
    for (std::size_t t = 0; fits && t < tensors.size(); ++t)
      fits = joined.back().by[t] == axis.by[t] * axis.size;
    if (!fits) {
      joined.push_back(axis);
    } else {
      joined.back() = {joined.back().size * axis.size, axis.by};
    }
  }
  const Axis inner = joined.back();
  joined.pop_back();
  constexpr int64_t kGrain = 32768;
  if (joined.empty()) {
    return parallel_for(0, inner.size, kGrain, [&](int64_t begin, int64_t end) {
      Four offsets{};
      for (std::size_t t = 0; t < 4; ++t) offsets[t] = begin * inner.by[t];
      work(offsets, inner.by, end - begin);
    });
  }
  int64_t lines = 1;
  for (const Axis& axis : joined) lines *= axis.size;
  parallel_for(
      0, lines, std::max<int64_t>(1, kGrain / inner.size), [&](int64_t begin, int64_t end) {
        for (int64_t line = begin; line < end; ++line) {
          Four offsets{};
          int64_t rest = line;
          for (std::size_t a = joined.size(); a-- > 0;) {
            const int64_t i = rest % joined[a].size;
            rest /= joined[a].size;
            for (std::size_t t = 0; t < 4; ++t) offsets[t] += i * joined[a].by[t];
          }
          work(offsets, inner.by, inner.size);
        }
      });
}

}  // namespace at
