#pragma once
// Compares the voxels of two images by their places in the world, as their files give them.
#include <string>
#include <vector>

#include "data/sample/sample.h"
#include "io/image.h"

namespace cytra::data {

/// How the voxels of an image are placed relative to those of another one.
struct GridRelation {
  enum class Kind {
    same,     // equal up to a tenth of a voxel
    turned,   // the same in another order or direction of axes
    unknown,  // a file gives no place, and nothing that both give contradicts
    other
  } kind = Kind::unknown;
  // The axis, for `turned`, that is parallel to each of the image's axes, and whether it is
  // reversed.
  std::vector<int64_t> from = {};
  std::vector<bool> mirrored = {};
  std::string difference = {};  // of `other`: "voxels of 1 x 1 x 2 mm, expected 1 x 1 x 1 mm"
};
/// Compares the voxels of two images. Sizes: [D,]H,W.
GridRelation compare_grids(const io::Geometry& geometry,
                           const std::vector<int64_t>& size,
                           const io::Geometry& image,
                           const std::vector<int64_t>& image_size);

/// Brings loaded images to the grid of the sample's image. Images with its voxels in another order
/// or direction are turned, and one whose file gives no place gets the image's. Others follow
/// Sample::on_mismatch, but an error is left to expect_same_grid(), as a transform may solve it.
void settle_grids(Sample& sample);
/// Checks, before a batch is made, that `key` has the voxels of `image`, or turns it onto them.
/// Sizes that differ on file are found where transforms have padded or cut both to one size.
/// Throws: DataError that names both files, both affines and what to do.
void expect_same_grid(Sample& sample, const std::string& key, const std::string& image);

/// The directions of a volume's axes (x, y, z), as "RAS"; "" where they are unknown.
std::string orientation_of(const io::Geometry& geometry);
/// The message of expect_same_grid() for two files.
std::string mismatch_text(const std::string& key,
                          const std::string& path,
                          const io::Geometry& geometry,
                          const std::string& image,
                          const std::string& image_path,
                          const io::Geometry& image_geometry,
                          const std::string& difference);

}  // namespace cytra::data
