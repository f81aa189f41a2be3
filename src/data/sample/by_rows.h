#pragma once
// Applies transforms that can go through an image some rows at a time: see per_key.h.
#include <functional>
#include <type_traits>

#include "data/sample/sample.h"

namespace cytra::data {

template <class T, class = void>
struct IsPointwise : std::false_type {};
template <class T>
struct IsPointwise<T, std::enable_if_t<T::kIsPointwise>> : std::true_type {};
template <class T, class = void>
struct HasRows : std::false_type {};
template <class T>
struct HasRows<T, std::void_t<decltype(&T::by_rows)>> : std::true_type {};

/// Transform::is_bounded().
template <class T>
constexpr bool kIsBounded = requires {
  T::kIsBounded;
};

/// Whether it is a large image that is not float32 yet.
bool is_changed_by_rows(const at::Tensor& image);
/// Changes an image by rows. `begin` returns the change of rows, as Transform::by_rows(); where it
/// returns none, the result is not defined.
at::Tensor changed_by_rows(const at::Tensor& image,
                           const std::function<RowChange(const Scan& scan)>& begin);

/// Applies change(image) to such an image, with one float32 copy in memory instead of two. The
/// result is not defined for other images, and for a change that needs the whole image.
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
