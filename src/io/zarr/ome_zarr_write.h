#pragma once
// The smaller levels and the OME attributes of images that we write; for zarr*.cpp only.
#include <string>
#include <utility>
#include <vector>

#include "io/image.h"
#include "io/reader.h"
#include "io/zarr/store.h"

namespace cytra::io {

struct PyramidLevel {
  std::array<int64_t, 4> shape{};          // C, Z, Y, X
  std::array<int64_t, 3> factor{1, 1, 1};  // Z, Y, X, against level 0
};
/// The levels, from level 0 on. `most` 0: until Y and X are at most 256.
std::vector<PyramidLevel> pyramid_levels(const std::array<int64_t, 4>& shape,
                                         const std::array<double, 3>& spacing_um,
                                         int64_t most);

/// Shrinks `image` by `factor` (1 or 2 for Z, Y, X), with sizes rounded up: to the mean of the
/// existing voxels (integers rounded, halves up), or to the first of them.
Image shrink(const Image& image, const std::array<int64_t, 3>& factor, bool is_nearest);

/// The axes with which an image is written: y and x, z for stacks or a known spacing, c for
/// several channels or a name. Each is an index into C, Z, Y, X.
std::vector<std::size_t> written_axes(const ImageInfo& info);
extern const char* const kAxisNames[4];  // c, z, y, x

/// The name of an image from its path, without .ome.zarr.
std::string image_name(const std::string& path);

/// The smallest and largest value of each channel, for omero's window.
using Ranges = std::vector<std::pair<double, double>>;

/// The attributes that 0.4 has in .zattrs and 0.5 in attributes.ome. `is_label`: for an image's
/// labels.
Json ome_attributes(const std::string& name,
                    const ImageInfo& info,
                    const std::vector<PyramidLevel>& levels,
                    const Ranges& ranges,
                    bool is_nearest,
                    bool is_label,
                    bool is_v0_5);
/// Makes zarr.json of a group.
Json group_json(const Json& ome);

}  // namespace cytra::io
