#pragma once
// The common code of transforms that may treat each channel by itself.
#include <string>
#include <vector>

#include <ATen/ATen.h>

#include "base/error.h"

namespace cytra::data {

/// Applies change(part, number) to each channel when channel_wise, else to the whole image.
at::Tensor by_numbered_channel(const at::Tensor& image, bool channel_wise, const auto& change) {
  if (!channel_wise) return change(image, std::size_t{0});
  std::vector<at::Tensor> parts;
  for (const at::Tensor& part : image.unbind(0)) parts.push_back(change(part, parts.size()));
  return at::stack(parts);
}

/// Applies change(part) to each channel when channel_wise, else to the whole image.
at::Tensor by_channel(const at::Tensor& image, bool channel_wise, const auto& change) {
  return by_numbered_channel(
      image, channel_wise, [&](const at::Tensor& part, std::size_t) { return change(part); });
}

/// Applies change(part, number) with one number for the image, or one for each channel.
at::Tensor by_channel(const at::Tensor& image,
                      const std::vector<double>& numbers,
                      const auto& change) {
  if (numbers.size() == 1) return change(image, numbers[0]);
  if (std::ssize(numbers) != image.size(0)) {
    throw DataError(std::to_string(image.size(0)) + " channels, expected " +
                    std::to_string(numbers.size()) + " as in the first key: channel_wise is true");
  }
  std::vector<at::Tensor> parts;
  for (std::size_t c = 0; c < numbers.size(); ++c)
    parts.push_back(change(image[static_cast<int64_t>(c)], numbers[c]));
  return at::stack(parts);
}

}  // namespace cytra::data
