#pragma once
// Exact turns and mirrors: voxels change places, no value is computed.
#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace cytra::data::spatial {

/// Axis d of the result is axis from[d] of the image, backwards where mirrored[d]. Axes are
/// spatial: 0 is the first after C.
struct Turn {
  std::vector<int64_t> from;
  std::vector<bool> mirrored;
  bool is_identity() const;
};
/// Mirrors along `axes`; a negative one counts from the last. Throws: ConfigError, with `place`.
Turn mirror(const char* place, const std::vector<int64_t>& axes, int64_t dims);
/// k turns by 90 degrees from axis plane[0] to plane[1] (torch.rot90). Throws: ConfigError.
Turn quarter_turns(const char* place, const std::vector<int64_t>& plane, int64_t k, int64_t dims);

/// In one pass, also over a crop that is a view; contiguous, in the image's type. The identity: the
/// image itself.
at::Tensor turned(const at::Tensor& image, const Turn& turn);
/// For move_voxels(): the result's voxel p is the image's voxel matrix @ p. size: of the image.
at::Tensor matrix_of(const Turn& turn, at::IntArrayRef size);

}  // namespace cytra::data::spatial
