#include "report/panel.h"

#include <algorithm>

#include <ATen/ATen.h>

#include "io/objects/palette.h"

namespace cytra::report {
namespace {

constexpr int64_t kLongestSide = 512, kGap = 4;
constexpr unsigned char kGapGrey = 128;

struct Range {
  double low, high;
};

/// (C,[D,]H,W) -> (1 or 3,H,W) float.
at::Tensor plane_of(const at::Tensor& image) {
  at::Tensor plane = image.detach().to(at::kFloat);
  if (plane.dim() == 4) plane = plane.select(1, plane.size(1) / 2);
  if (plane.size(0) != 3) plane = plane.slice(0, 0, 1);
  return plane.cpu();
}

bool are_labels(const at::Tensor& plane) {
  return plane.size(0) == 1 &&
         at::logical_and(plane.eq(plane.round()), plane.ge(0)).all().item<bool>();
}

at::Tensor shrunk(const at::Tensor& plane, bool is_labels) {
  const int64_t factor = (std::max(plane.size(1), plane.size(2)) + kLongestSide - 1) / kLongestSide;
  if (factor == 1) return plane;
  if (is_labels) return plane.slice(1, 0, std::nullopt, factor).slice(2, 0, std::nullopt, factor);
  return at::avg_pool2d(plane, {factor, factor}, {factor, factor}, 0, /*ceil_mode=*/true);
}

Range percentiles_of(const at::Tensor& plane) {
  const at::Tensor sorted = std::get<0>(plane.flatten().sort());
  const auto at_share = [&](double share) {
    return sorted[static_cast<int64_t>(share * static_cast<double>(sorted.numel() - 1))]
        .item<double>();
  };
  return {at_share(0.01), at_share(0.998)};
}

/// (3,H,W) of bytes.
at::Tensor coloured(const at::Tensor& labels) {
  const at::Tensor numbers = labels[0].to(at::kLong);
  at::Tensor colours = at::zeros({8, 3}, at::TensorOptions(at::kByte));  // row 0: background
  for (int64_t label = 1; label < 8; ++label) {
    for (int64_t c = 0; c < 3; ++c)
      colours[label][c] = io::label_colour(label)[static_cast<std::size_t>(c)];
  }
  const at::Tensor rows = at::where(numbers.eq(0), numbers, (numbers - 1).remainder(7) + 1);
  return colours.index_select(0, rows.flatten())
      .view({numbers.size(0), numbers.size(1), 3})
      .permute({2, 0, 1});
}

at::Tensor grey(const at::Tensor& plane, const Range& range) {
  const double scale = 255 / std::max(range.high - range.low, 1e-12);
  return ((plane - range.low) * scale)
      .nan_to_num()
      .clamp(0, 255)
      .to(at::kByte)
      .expand({3, plane.size(1), plane.size(2)});
}

}  // namespace

std::vector<std::string> panel_parts(const std::map<std::string, Tensor>& preview) {
  std::vector<std::string> names;
  for (const char* name : {"input", "target", "prediction"}) {
    if (preview.count(name) != 0) names.emplace_back(name);
  }
  for (const auto& [name, image] : preview) {
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  return names;
}

io::Image draw_panel(const std::map<std::string, Tensor>& preview) {
  std::vector<at::Tensor> tiles;
  std::optional<Range> of_target;
  int64_t height = 0, width = -kGap;
  for (const std::string& name : panel_parts(preview)) {
    at::Tensor plane = plane_of(preview.at(name));
    const bool is_labels = name != "input" && are_labels(plane);
    plane = shrunk(plane, is_labels);
    if (is_labels) {
      tiles.push_back(coloured(plane));
    } else {
      Range range = percentiles_of(plane);
      if (name == "target") of_target = range;
      const bool is_share = plane.min().item<double>() >= 0 && plane.max().item<double>() <= 1;
      if (name != "input" && of_target) range = *of_target;
      if (name != "input" && !of_target && is_share) range = {0, 1};
      tiles.push_back(grey(plane, range));
    }
    height = std::max(height, plane.size(1));
    width += plane.size(2) + kGap;
  }
  at::Tensor picture = at::full({3, height, width}, kGapGrey, at::TensorOptions(at::kByte));
  int64_t left = 0;
  for (const at::Tensor& tile : tiles) {
    picture.slice(1, 0, tile.size(1)).slice(2, left, left + tile.size(2)).copy_(tile);
    left += tile.size(2) + kGap;
  }
  io::Image image;
  image.shape = {3, 1, height, width};
  const auto* bytes = picture.const_data_ptr<uint8_t>();
  image.pixels.assign(bytes, bytes + picture.numel());
  return image;
}

}  // namespace cytra::report
