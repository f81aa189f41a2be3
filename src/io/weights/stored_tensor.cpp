#include "io/weights/stored_tensor.h"

#include <algorithm>
#include <cstring>

namespace cytra::io {
namespace {

constexpr std::size_t kMostStoredDimensions = 64;

bool is_row_major(const StoredLayout& layout) {
  int64_t expected = 1;
  for (std::size_t d = layout.shape.size(); d > 0; --d) {
    if (layout.shape[d - 1] != 1 && layout.strides[d - 1] != expected) return false;
    expected *= layout.shape[d - 1];
  }
  return true;
}

/// The index of the last element; nothing where it is too large.
std::optional<uint64_t> last_of(const StoredLayout& layout) {
  auto last = static_cast<uint64_t>(layout.offset);
  for (std::size_t d = 0; d < layout.strides.size(); ++d) {
    uint64_t reach = 0;
    if (__builtin_mul_overflow(static_cast<uint64_t>(layout.shape[d] - 1),
                               static_cast<uint64_t>(layout.strides[d]),
                               &reach) ||
        __builtin_add_overflow(last, reach, &last))
      return {};
  }
  return last;
}

bool is_negative(int64_t value) {
  return value < 0;
}

}  // namespace

TensorView StoredTensors::read(const std::string& name,
                               const StoredLayout& layout,
                               std::string_view storage) {
  const auto& [dtype, shape, strides, offset] = layout;
  if (shape.size() > kMostStoredDimensions) refuse_(name, "has more than 64 dimensions");
  if (strides.size() != shape.size() || offset < 0 || std::ranges::any_of(shape, is_negative) ||
      std::ranges::any_of(strides, is_negative))
    refuse_(name, "has a shape or strides that are not whole numbers");
  const std::size_t element = element_size(dtype);
  TensorView view{dtype, shape, nullptr, element};
  for (const int64_t side : shape) {
    if (__builtin_mul_overflow(view.bytes, static_cast<std::size_t>(side), &view.bytes))
      refuse_(name, "has a shape that is too large");
  }
  if (std::ranges::count(shape, 0) > 0) view.bytes = 0;
  if (view.bytes == 0) return view;
  if (storage.data() == nullptr) refuse_(name, "has no storage in the file");
  const std::size_t stored = storage.size() / element;
  const std::optional<uint64_t> last = last_of(layout);
  if (!last || *last >= stored) refuse_(name, "lies outside its storage");
  const auto* begin = reinterpret_cast<const unsigned char*>(storage.data()) +
                      static_cast<std::size_t>(offset) * element;
  view.data = is_row_major(layout) ? begin : copy(name, layout, begin, stored, view.bytes);
  return view;
}

const unsigned char* StoredTensors::copy(const std::string& name,
                                         const StoredLayout& layout,
                                         const unsigned char* begin,
                                         std::size_t stored,
                                         std::size_t bytes) {
  const auto& [dtype, shape, strides, offset] = layout;
  const std::size_t element = element_size(dtype);
  if (bytes / element > stored || bytes > most_copied_)
    refuse_(name, "is larger than its storage (expanded? make it .contiguous())");
  most_copied_ -= bytes;
  std::vector<unsigned char>& values = copies_.emplace_back(bytes);
  std::vector<int64_t> index(strides.size(), 0);
  std::size_t from = 0;
  for (std::size_t to = 0; to < values.size(); to += element) {
    std::memcpy(values.data() + to, begin + from * element, element);
    for (std::size_t d = strides.size(); d > 0; --d) {
      from += static_cast<std::size_t>(strides[d - 1]);
      if (++index[d - 1] < shape[d - 1]) break;
      from -= static_cast<std::size_t>(strides[d - 1] * shape[d - 1]);
      index[d - 1] = 0;
    }
  }
  return values.data();
}

}  // namespace cytra::io
