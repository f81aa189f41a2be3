#include "data/sample/by_rows.h"

#include <algorithm>

#include <ATen/ATen.h>

namespace cytra::data {
namespace {

constexpr int64_t kLargeImage = int64_t{1} << 26, kRowValues = int64_t{1} << 18;  // values

}  // namespace

bool is_changed_by_rows(const at::Tensor& image) {
  return image.scalar_type() != at::kFloat && image.numel() > kLargeImage && image.dim() > 2;
}

at::Tensor changed_by_rows(const at::Tensor& image,
                           const std::function<RowChange(const Scan& scan)>& begin) {
  const int64_t all = image.size(1);
  const int64_t some = std::max<int64_t>(1, kRowValues / (image.numel() / all));
  const auto rows_from = [&](int64_t row) {
    return image.slice(1, row, row + some).to(at::kFloat).contiguous();
  };
  const RowChange change = begin([&](const Rows& look) {
    for (int64_t row = 0; row < all; row += some) look(rows_from(row));
  });
  at::Tensor made;
  for (int64_t row = 0; change && row < all; row += some) {
    const at::Tensor rows = change(rows_from(row));
    if (!made.defined()) {
      std::vector<int64_t> sizes = rows.sizes().vec();
      sizes[1] = all;
      made = at::empty(sizes, rows.options());
    }
    made.slice(1, row, row + some).copy_(rows);
  }
  return made;
}

}  // namespace cytra::data
