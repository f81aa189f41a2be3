#pragma once
// Pads and crops a (C,[Z,]Y,X) tensor.
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

namespace cytra::data::spatial {

/// The numbers of voxels before and after, per spatial dimension.
using PadWidths = std::vector<std::pair<int64_t, int64_t>>;

/// The modes of padding: constant, and numpy's or torch's names for the others: edge = replicate,
/// wrap = circular, reflect (without the border voxel), symmetric (with it).
extern const std::vector<std::string> kPadModes;
at::Tensor pad(const at::Tensor& image,
               const PadWidths& widths,
               const std::string& mode,
               double value);
/// The padding up to `size`: half before, half (and the odd voxel) after; `at_end`: all after.
PadWidths widths_to(at::IntArrayRef image, const std::vector<int64_t>& size, bool at_end);

/// Checks the size of a channel that a transform is going to make, since options and sizes in
/// files may be anything. Throws: DataError.
void check_made_size(at::IntArrayRef size);

/// A view of the box; parts beyond the image are cut off.
at::Tensor crop(const at::Tensor& image,
                const std::vector<int64_t>& start,
                const std::vector<int64_t>& size);
/// The start of a box of `size` in the middle of an image.
std::vector<int64_t> center_start(at::IntArrayRef image, const std::vector<int64_t>& size);

}  // namespace cytra::data::spatial
