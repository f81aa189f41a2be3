#pragma once
// Exact turns and mirrors: voxels are moved, and no value is computed.
#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace cytra::data::spatial {

/// A turn: axis d of the result is axis from[d] of the image, backwards where mirrored[d]. Axes
/// are spatial: 0 is the first after C.
struct Turn {
  std::vector<int64_t> from;
  std::vector<bool> mirrored;
  bool is_identity() const;
};
/// Mirrors along `axes`; a negative one counts from the last. Throws: ConfigError, with `place`.
Turn mirror(const char* place, const std::vector<int64_t>& axes, int64_t dims);
/// k turns by 90 degrees from axis plane[0] to plane[1] (torch.rot90). Throws: ConfigError.
Turn quarter_turns(const char* place, const std::vector<int64_t>& plane, int64_t k, int64_t dims);

/// Turns an image in one pass, also where it is a view of a crop. The result is contiguous, in the
/// image's type; for the identity it is the image itself. folder: as ops::room_for().
at::Tensor turned(const at::Tensor& image, const Turn& turn, const std::string& folder = "");
/// The matrix for move_voxels(): the result's voxel p is the image's voxel matrix @ p. size: of
/// the image.
at::Tensor matrix_of(const Turn& turn, at::IntArrayRef size);

}  // namespace cytra::data::spatial
