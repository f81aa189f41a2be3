#include "data/survey/target_facts.h"

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "ops/labels/components.h"

namespace cytra::data {
namespace {

constexpr std::size_t kMostValues = 4096, kMostPaints = 64;
constexpr int64_t kValuesAtOnce = int64_t{1}
                                  << 24;  // values as float32, whatever the size of an image

/// Calls `look` for all of `values` (rows, columns), some rows at a time.
void by_rows(const at::Tensor& values, const auto& look) {
  const int64_t some = std::max<int64_t>(1, kValuesAtOnce / std::max<int64_t>(1, values.size(1)));
  for (int64_t row = 0; row < values.size(0); row += some)
    look(values.slice(0, row, row + some).to(at::kFloat).contiguous());
}

/// Makes (C,[D,]H,W) to rows (C [D] H, W).
at::Tensor rows_of(const at::Tensor& image) {
  return image.reshape({-1, image.size(-1)});
}

void find_range(const at::Tensor& rows, TargetFacts& facts) {
  bool is_first = true;
  by_rows(rows, [&](const at::Tensor& some) {
    const float* values = some.const_data_ptr<float>();
    const auto [low, high] = std::minmax_element(values, values + some.numel());
    facts.min = is_first ? *low : std::min<double>(facts.min, *low);
    facts.max = is_first ? *high : std::max<double>(facts.max, *high);
    is_first = false;
  });
}

void count_values(const at::Tensor& rows, TargetFacts& facts) {
  find_range(rows, facts);
  const double eighth = (facts.max - facts.min) / 8;
  const int64_t length = rows.size(1);
  std::map<double, int64_t> counts;
  int64_t at_ends = 0, between = 0, alike = 0;
  bool are_few = true;
  by_rows(rows, [&](const at::Tensor& some) {
    const float* values = some.const_data_ptr<float>();
    const int64_t count = some.numel();
    int64_t run = 0;
    for (int64_t i = 0; i < count; ++i) {
      const float value = values[i];
      const int64_t x = i % length;
      facts.is_whole = facts.is_whole && value == std::floor(value);
      at_ends += value - facts.min <= eighth || facts.max - value <= eighth;
      if (value != facts.min && value != facts.max) {
        ++between;
        alike += (x > 0 && values[i - 1] == value) || (x + 1 < length && values[i + 1] == value);
      }
      ++run;
      if (i + 1 < count && values[i + 1] == value) continue;
      if (are_few) counts[value] += run;
      are_few = are_few && counts.size() <= kMostValues;
      run = 0;
    }
  });
  if (are_few) facts.counts = std::move(counts);
  facts.at_ends = static_cast<double>(at_ends) / static_cast<double>(rows.numel());
  if (between > 0) facts.alike = static_cast<double>(alike) / static_cast<double>(between);
}

/// Counts the regions of an image with one channel.
int64_t count_regions(const at::Tensor& target) {
  const bool is_plane = target.dim() == 4 && target.size(1) == 1;
  const at::Tensor space = is_plane ? target[0][0] : target[0];
  ops::StitchedComponents regions(0, space.dim());
  const int64_t some = std::max<int64_t>(1, kValuesAtOnce / std::max<int64_t>(1, space[0].numel()));
  for (int64_t row = 0; row < space.size(0); row += some)
    regions.add(space.slice(0, row, row + some).to(at::kFloat).contiguous());
  return regions.count();
}

/// The mean over all values, by sums of some rows in double.
double mean_of(const at::Tensor& a, const at::Tensor& b, const auto& term) {
  double sum = 0;
  const int64_t some = std::max<int64_t>(1, kValuesAtOnce / std::max<int64_t>(1, a.size(1)));
  for (int64_t row = 0; row < a.size(0); row += some) {
    sum += term(a.slice(0, row, row + some).to(at::kDouble),
                b.slice(0, row, row + some).to(at::kDouble))
               .sum()
               .template item<double>();
  }
  return sum / static_cast<double>(a.numel());
}

/// Whether two images have the same values up to scale and offset.
bool are_same(const at::Tensor& a, const at::Tensor& b) {
  const auto mean = [](const at::Tensor& of) {
    return mean_of(of, of, [](const at::Tensor& x, const at::Tensor&) { return x; });
  };
  const double mean_a = mean(a), mean_b = mean(b);
  const auto moment = [&](const at::Tensor& one, double from, const at::Tensor& other, double to) {
    return mean_of(one, other, [&](const at::Tensor& x, const at::Tensor& y) {
      return (x - from) * (y - to);
    });
  };
  const double scale = std::sqrt(moment(a, mean_a, a, mean_a) * moment(b, mean_b, b, mean_b));
  return scale > 0 && std::abs(moment(a, mean_a, b, mean_b)) / scale > 0.99999;
}

void count_colours(const at::Tensor& target, TargetFacts& facts) {
  if (!facts.is_whole) return;
  const at::Tensor pixels = target.slice(0, 0, 3).reshape({3, -1});
  std::map<int32_t, int64_t> counts;
  for (int64_t begin = 0; begin < pixels.size(1); begin += kValuesAtOnce) {
    const at::Tensor rgb = pixels.slice(1, begin, begin + kValuesAtOnce).to(at::kFloat);
    if (rgb.lt(0).any().item<bool>() || rgb.gt(255).any().item<bool>()) return;
    const at::Tensor codes = (rgb[0] * 65536 + rgb[1] * 256 + rgb[2]).to(at::kInt).contiguous();
    const int32_t* code = codes.const_data_ptr<int32_t>();
    for (int64_t i = 0; i < codes.numel(); ++i) {
      ++counts[code[i]];
      if (counts.size() > kMostPaints) return;
    }
  }
  for (const auto& [value, count] : counts) facts.colours[fmt::format("#{:06x}", value)] = count;
}

}  // namespace

at::Tensor without_equal_channels(const at::Tensor& image) {
  const int64_t channels = image.size(0);
  if (channels < 2 || channels > 4 || image.numel() == 0) return image;
  const int64_t colours = channels == 2 ? 1 : 3;
  const at::Tensor first = image.slice(0, 0, 1);
  if (colours == 3 && !image.slice(0, 0, 3).eq(first).all().item<bool>()) return image;
  if (colours < channels) {
    const at::Tensor alpha = image[colours].to(at::kFloat);  // torch has no min() of uint16
    if (alpha.min().ne(alpha.max()).item<bool>()) return image;
  }
  return first;
}

at::Tensor as_numbers(const at::Tensor& target) {
  const at::Tensor grey = without_equal_channels(target);
  if (grey.size(0) != 3 && grey.size(0) != 4) return grey;
  const at::Tensor rgb = grey.slice(0, 0, 3).to(at::kFloat);
  const at::Tensor wrong = rgb.ne(rgb.round()).logical_or(rgb.lt(0)).logical_or(rgb.gt(255));
  if (wrong.any().item<bool>()) return grey;
  return (rgb[0] * 65536 + rgb[1] * 256 + rgb[2]).to(at::kInt).unsqueeze(0);
}

TargetFacts look_at_target(const at::Tensor& target, const at::Tensor& image, bool is_label) {
  TargetFacts facts;
  facts.channels = target.size(0);
  if (target.numel() == 0) return facts;
  count_values(rows_of(target), facts);
  if (is_label && (facts.channels == 3 || facts.channels == 4)) count_colours(target, facts);
  if (is_label && facts.channels == 1 && !facts.counts.empty())
    facts.regions = count_regions(target);
  const bool are_many = facts.counts.empty() || facts.counts.size() > kFewTargetValues;
  if (are_many && image.sizes() == target.sizes())
    facts.is_image = are_same(rows_of(target), rows_of(image));
  return facts;
}

}  // namespace cytra::data
