#pragma once
// Transforms that can go through an image some rows at a time: see per_key.h.
#include <functional>
#include <type_traits>

#include "data/sample.h"

namespace cytra::data {

template <class T, class = void>
struct IsPointwise : std::false_type {};
template <class T>
struct IsPointwise<T, std::enable_if_t<T::kIsPointwise>> : std::true_type {};
template <class T, class = void>
struct HasRows : std::false_type {};
template <class T>
struct HasRows<T, std::void_t<decltype(&T::by_rows)>> : std::true_type {};

/// A large image that is not float32 yet.
bool is_changed_by_rows(const at::Tensor& image);
/// `begin` gives the change of rows, as Transform::by_rows(); where it gives none, the result is
/// not defined.
at::Tensor changed_by_rows(const at::Tensor& image,
                           const std::function<RowChange(const Scan& scan)>& begin);

/// change(image) of such an image: float32 is there once, not twice. Not defined for other images,
/// and for a change that takes the whole image.
template <class Change>
at::Tensor changed_by_rows(const at::Tensor& image, const Change& change) {
  if constexpr (IsPointwise<Change>::value || HasRows<Change>::value) {
    if (!is_changed_by_rows(image)) return {};
    return changed_by_rows(
        image, std::function<RowChange(const Scan&)>([&](const Scan& scan) -> RowChange {
          if constexpr (HasRows<Change>::value)
            return change.by_rows(scan);
          else
            return std::cref(change);
        }));
  }
  return {};
}

}  // namespace cytra::data
