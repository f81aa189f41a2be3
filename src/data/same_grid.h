#pragma once
// Whether two images have the same voxels, by what their files say of the world.
#include <string>
#include <vector>

#include "data/sample.h"
#include "io/image.h"

namespace cytra::data {

/// How the voxels of an image lie to those of another one.
struct Placement {
  enum class Kind {
    same,     // up to a tenth of a voxel
    turned,   // the same in another order or direction of axes
    unknown,  // a file does not tell, and nothing that both tell speaks against it
    other
  } kind = Kind::unknown;
  // Of `turned`, for each of the image's axes: the axis that follows it, and whether against it
  std::vector<int64_t> from = {};
  std::vector<bool> mirrored = {};
  std::string difference = {};  // of `other`: "voxels of 1 x 1 x 2 mm, expected 1 x 1 x 1 mm"
};
/// Sizes: [D,]H,W.
Placement placement_of(const io::Geometry& geometry,
                       const std::vector<int64_t>& size,
                       const io::Geometry& image,
                       const std::vector<int64_t>& image_size);

/// After images were loaded: those that have the voxels of the sample's image in another order or
/// direction are turned onto it, and one whose file tells nothing lies as the image does. Others
/// follow Sample::on_mismatch, but an error is left to expect_same_grid(): a transform may mend it.
void settle_grids(Sample& sample);
/// Before a batch is made: `key` has the voxels of `image`, or is turned onto them. Sizes are left
/// to the caller where a file does not tell where it lies. Throws: DataError that names both
/// files, both affines and what to do.
void expect_same_grid(Sample& sample, const std::string& key, const std::string& image);

/// "RAS": where the axes of a volume (x, y, z) go; "" where that is not known.
std::string orientation_of(const io::Geometry& geometry);
/// What expect_same_grid() says of two files.
std::string mismatch_text(const std::string& key,
                          const std::string& path,
                          const io::Geometry& geometry,
                          const std::string& image,
                          const std::string& image_path,
                          const io::Geometry& image_geometry,
                          const std::string& difference);

}  // namespace cytra::data
