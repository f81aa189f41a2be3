#pragma once
// Reads images of any format: their description, and any part of them.
#include <memory>
#include <string>
#include <vector>

#include "io/image.h"

namespace cytra::io {

/// The selection of an image in a file, which may hold several scenes, each a pyramid of levels
/// over time.
struct Selection {
  int64_t scene = -1;             // -1: the first that the file itself holds; DataError for one of
                                  // several DICOM series
  int64_t level = 0;              // 0 is the finest
  int64_t timepoint = -1;         // -1: the only one; DataError when there are several
  std::vector<int64_t> channels;  // empty: all, in their order
  // The file's axes, the slowest first: T, C and Z at most once each, then YX ("TZCYX"); axes of
  // size 1 may be left out, and samples within a page (RGB) are no axis. "": as in the file. For
  // TIFF, NumPy, HDF5 and Zarr; other formats name their own.
  std::string axes = {};
  int64_t plane = -1;  // -1: all; else one becomes an image of its own
};
/// Checks axes. Throws: ConfigError for what can't be Selection::axes.
void check_axes(const std::string& axes);

struct ImageInfo {
  Dtype dtype = Dtype::u8;
  std::array<int64_t, 4> shape{1, 1, 1, 1};  // C, Z, Y, X of the selected scene, level, channels
  int64_t scenes = 1, levels = 1, timepoints = 1;
  Geometry geometry;                       // of the selected level
  std::vector<std::string> channel_names;  // of the selected channels, or empty
};

/// A box of voxels, in Z, Y, X.
struct Region {
  std::array<int64_t, 3> begin{0, 0, 0};
  std::array<int64_t, 3> size{-1, -1, -1};  // -1: to the end
};

/// An opened image. Thread: read() may run on several threads at once.
class ImageReader {
 public:
  virtual ~ImageReader() = default;
  const ImageInfo& info() const { return info_; }
  /// Reads the voxels of a region, all selected channels, and no more of the file than the format
  /// makes necessary. Throws: DataError naming the file for damaged data, or a region that is not
  /// within the image.
  virtual Image read(const Region& region) const = 0;

 protected:
  ImageInfo info_;
};

/// Opens an image by its content, a folder as OME-Zarr or a DICOM series; "a.h5/raw" is data set
/// raw of an HDF5 file. Throws: DataError naming the file and
/// what is wrong (not an image, truncated, no such scene, level, time point or channel),
/// ConfigError (missing, not readable).
std::unique_ptr<ImageReader> open_image(const std::string& path, const Selection& selection = {});

/// Whether a path is an image, by the ending of a format (io/formats.h) in any case; for a folder
/// by its content: an OME-Zarr or DICOM files.
bool is_image_path(const std::string& path);

/// The file of a path that continues inside it ("a.h5" for "a.h5/raw"); else the path.
std::string file_of(const std::string& path);

/// The further files of an image's content, also missing ones: NAME.img for NAME.hdr, files that
/// an OME-XML or a header names. A folder has none, as it contains all of them.
std::vector<std::string> other_files_of(const std::string& path);

/// Reads a whole image.
Image read_image(const std::string& path, const Selection& selection = {});

/// Cuts `region` out of an image in memory, for formats that can't read parts. Its affine, if
/// known, is that of the region.
Image crop(const Image& image, const Region& region, const std::string& path);
/// The region with every size set. Throws: DataError unless it is within `shape` (C, Z, Y, X).
Region within(const Region& region, const std::array<int64_t, 4>& shape, const std::string& path);

}  // namespace cytra::io
