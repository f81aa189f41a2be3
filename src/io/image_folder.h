#pragma once
// Finds the images in a folder, and in a file: the rule for all code that lists folders.
#include <filesystem>
#include <string>
#include <vector>

namespace cytra::io {

/// Whether it is a name that systems put beside files: .DS_Store, ._a.tif, __MACOSX, Thumbs.db.
bool is_hidden(const std::string& name);
/// Whether lists leave an entry out: a hidden name, or a folder with nothing but runs of our
/// programs, such as logs/.
bool is_left_out(const std::filesystem::directory_entry& entry);

/// Lists the images of a folder, with `is_recursive` also of folders below (links to folders are
/// not followed), sorted by path. Hidden names are left out, and files of an OME-TIFF set whose
/// first plane is in another file of the list, which stands for the whole image. One line reports
/// those, and one the kinds that are not read. Throws: ConfigError for a folder that can't be
/// read.
std::vector<std::string> list_images(const std::string& folder, bool is_recursive = false);

/// Whether a folder is an image itself: an OME-Zarr, or DICOM series; not when each of its DICOM
/// files is a separate plane (X-rays). Throws: as open_image().
bool is_one_image(const std::string& folder);

/// The folders of a plate's images below it, well by well: "A/1/0"; empty for others. Throws: as
/// open_image().
std::vector<std::string> plate_images(const std::string& folder);

/// The number of images up to which every TIFF is opened to see whether it is a part of a set; in
/// larger folders only those named .ome.tif are.
constexpr std::size_t kLookedInto = 2000;

/// The file or folder that identifies the image of a file: for an OME-TIFF set the file with the
/// first plane, for a NIfTI pair its header, for a DICOM series its folder; else the path.
/// `looks`: opens a TIFF of any name.
std::string whole_of(const std::string& path, bool looks = true);

/// Whether a folder, or one below it, has any file that may be an image. For a large folder it is
/// true.
bool may_hold_images(const std::string& folder);

/// The command line that converts a kind of image that is not read, by its ending; "" for others.
std::string conversion_of(const std::string& path);

/// The kinds that are read, for messages: "TIFF, OME-Zarr ... are read".
std::string kinds_read();

/// The scenes that a file holds itself: all, except that an OME-TIFF in several files has those
/// with planes in this one, and a slide has no label. Throws: what open_image() throws.
std::vector<int64_t> scenes_of(const std::string& path);
/// Warns, once, of the scenes of a file that are left out because none was chosen.
void tell_other_scenes(const std::string& path);

}  // namespace cytra::io
