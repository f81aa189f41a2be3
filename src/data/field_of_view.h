#pragma once
// Follows two images of different sizes whose files do not say where they lie: a target of another
// size that is padded, or cut, to the size of its image is none of it.
#include <vector>

#include "io/image.h"

namespace cytra::data {

bool has_field(const io::Geometry& geometry);
/// Lets transforms of either image move its `field`. Where pixel sizes and sizes agree, their first
/// voxels lie on each other; else both images show the same. Sizes: [D,]H,W.
void share_field(io::Geometry& geometry,
                 const std::vector<int64_t>& size,
                 io::Geometry& image,
                 const std::vector<int64_t>& image_size);
/// The geometry that has the field as its place.
io::Geometry in_field(io::Geometry geometry);

}  // namespace cytra::data
