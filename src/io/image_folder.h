#pragma once
// What of a folder, and of a file, is an image to work on: the one rule for all who list folders.
#include <string>
#include <vector>

namespace cytra::io {

/// What systems leave beside files: names with a dot in front (.DS_Store, ._a.tif), __MACOSX,
/// Thumbs.db and the like.
bool is_hidden(const std::string& name);

/// The images of a folder, with `is_recursive` of those below, too (links to folders are not
/// followed), sorted by path. Left out are hidden names, and files of an OME-TIFF set whose first
/// plane is in another file of the list, which stands for the whole image. One line tells of those,
/// and one of kinds that are not read. Throws: ConfigError for a folder that can't be read.
std::vector<std::string> list_images(const std::string& folder, bool is_recursive = false);

/// Whether a folder is an image itself: an OME-Zarr, or DICOM series; not when each of its DICOM
/// files is a plane for itself (X-rays). Throws: as open_image().
bool is_one_image(const std::string& folder);

/// Of so many images every TIFF is opened to see whether it is a part of a set; of more those
/// alone that are named .ome.tif are.
constexpr std::size_t kLookedInto = 2000;

/// The file or folder that stands for the image that a file is a part of: of an OME-TIFF set the
/// file with the first plane, of a NIfTI pair its header, of a DICOM series its folder; else the
/// path. `looks`: into a TIFF of any name.
std::string whole_of(const std::string& path, bool looks = true);

/// Whether a folder, or one below it, has any file that may be an image. Of a large one: true.
bool may_hold_images(const std::string& folder);

/// Of a kind of image that is not read, by its ending, the line that converts it; "" for others.
std::string conversion_of(const std::string& path);

/// "TIFF, OME-Zarr ... are read", for messages.
std::string kinds_read();

/// The scenes that a file holds itself: all, but of an OME-TIFF in several files those with planes
/// in this one, and of a slide the slide without its label. Throws: as open_image().
std::vector<int64_t> scenes_of(const std::string& path);
/// Warns, once, of the scenes of a file that are left out where nobody chose one.
void tell_other_scenes(const std::string& path);

}  // namespace cytra::io
