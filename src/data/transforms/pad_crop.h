#pragma once
// Padding and cropping of one (C,[Z,]Y,X) tensor.
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

namespace cytra::data::spatial {

/// Voxels before and after, per spatial dimension.
using PadWidths = std::vector<std::pair<int64_t, int64_t>>;

/// constant, and numpy's or torch's names for the rest: edge = replicate, wrap = circular, reflect
/// (without the border voxel), symmetric (with it).
extern const std::vector<std::string> kPadModes;
at::Tensor pad(const at::Tensor& image,
               const PadWidths& widths,
               const std::string& mode,
               double value);
/// What is missing to `size`: half before, half (and the odd one) after; `at_end`: all after.
PadWidths widths_to(at::IntArrayRef image, const std::vector<int64_t>& size, bool at_end);

/// Of what a transform makes of a channel: options and stated sizes of others may be anything.
/// Throws: DataError.
void check_made_size(at::IntArrayRef size);

/// A view of the box; what reaches beyond the image is cut off.
at::Tensor crop(const at::Tensor& image,
                const std::vector<int64_t>& start,
                const std::vector<int64_t>& size);
/// Where a box of `size` begins in the middle of an image.
std::vector<int64_t> center_start(at::IntArrayRef image, const std::vector<int64_t>& size);

}  // namespace cytra::data::spatial
