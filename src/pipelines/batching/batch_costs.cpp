#include "pipelines/batching/batch_costs.h"

#include <iterator>

namespace cytra::pipelines {

void BatchCosts::record(int64_t images, double seconds) {
  const auto [known, is_new] = seconds_.emplace(images, seconds);
  if (!is_new) known->second += 0.2 * (seconds - known->second);
}

double BatchCosts::expected(int64_t images) const {
  if (seconds_.empty()) return 0;
  const auto above = seconds_.lower_bound(images);
  if (above == seconds_.end()) {
    const auto& [most, seconds] = *seconds_.rbegin();
    return seconds * static_cast<double>(images) / static_cast<double>(most);
  }
  if (above->first == images || above == seconds_.begin()) return above->second;
  const auto below = std::prev(above);
  const double share =
      static_cast<double>(images - below->first) / static_cast<double>(above->first - below->first);
  return below->second + share * (above->second - below->second);
}

}  // namespace cytra::pipelines
