#pragma once
// Finds which page of a TIFF holds which plane of an image, from its descriptions.
#include <memory>
#include <string>
#include <vector>

#include "io/reader.h"
#include "io/tiff/file.h"

namespace cytra::io {

struct TiffLayout {
  int64_t scenes = 1;
  std::vector<int64_t> own_scenes;  // those with planes in this file; empty: all
  // The members below are of the selected scene:
  int64_t channels = 1, planes = 1, timepoints = 1;  // channels without the samples within a page
  std::vector<std::size_t> pages;  // of (time point, channel, plane): index to the file's pages
  /// Whether `pages` are numbers of planes that follow each other in the pixels of
  /// contiguous_page.
  bool is_contiguous = false;
  std::size_t contiguous_page = 0;
  /// The pages, as `pages`, of each smaller level in the file's chain of pages.
  std::vector<std::vector<std::size_t>> smaller;
  Geometry geometry;
  std::vector<std::string> channel_names;
  /// The paths of an OME image's several files, this one first, and for each plane in `pages` the
  /// file that holds it. Else empty.
  std::vector<std::string> files;
  std::vector<std::size_t> file_of;
};

/// Understands OME-XML, ImageJ, tifffile's JSON, Zeiss LSM, MetaMorph STK and Aperio; else pages
/// of one size are the planes of a scene. Scene -1: the first, of an OME-TIFF the first with a
/// plane in this file. Throws: DataError for a scene that does not exist, axes that do not fit the
/// file, or descriptions that contradict the pages.
TiffLayout tiff_layout(const TiffFile& file, const Selection& selection);

/// Format::open of TIFF.
std::unique_ptr<ImageReader> open_tiff_image(const std::string& path, const Selection& selection);
/// Opens the image of a layout in one file, or in several files. Throws: what open_image throws.
std::unique_ptr<ImageReader> open_tiff_layout(std::shared_ptr<const TiffFile> file,
                                              const TiffLayout& layout,
                                              const Selection& selection);
std::unique_ptr<ImageReader> open_ome_set(std::shared_ptr<const TiffFile> file,
                                          const TiffLayout& layout,
                                          const Selection& selection);

/// The file that holds the first plane of an OME-TIFF's image, perhaps another one; the path
/// itself where it is unknown.
std::string begin_of_ome_set(const std::string& path);
/// Format::other_files of TIFF. Throws: what files_of_ome_xml() throws.
std::vector<std::string> ome_other_files(const std::string& path);
/// The other files that the OME-XML in a file names: files with planes, and the one with the whole
/// text. Throws: DataError for an invalid text.
std::vector<std::string> files_of_ome_xml(const std::string& path, const std::string& xml);
/// Finds the scenes of a TIFF, as scenes_of() in io/image_folder.h; false for other files.
bool tiff_scenes(const std::string& path, std::vector<int64_t>& scenes);

// The files *_layout.cpp use these:
struct TiffAxis {
  char name;  // 'C', 'Z' or 'T'
  int64_t size;
};
using PageIndices = std::vector<std::size_t>;  // of a file's pages
/// Names the file's axes by Selection::axes. Throws: what plane_axes() throws.
std::vector<TiffAxis> named(const std::string& path,
                            const std::string& names,
                            std::vector<TiffAxis> axes);
/// Sets sizes and pages for pages 0, 1 ... `count` - 1 that run over `axes`, the slowest first.
void place(const std::string& path,
           const std::vector<TiffAxis>& axes,
           int64_t count,
           TiffLayout& layout);
/// Changes a layout's pages 0, 1, ... to those at `indices`.
void map_to(const PageIndices& indices, TiffLayout& layout);
/// Whether a file of this size can hold so many planes without compression.
bool fits(const TiffPage& page, int64_t planes, std::size_t file_bytes);
int64_t whole_number(const std::string& path, const std::string& what, const std::string& text);
void check_scene(const std::string& path, int64_t scene, std::size_t scenes);
TiffLayout imagej_layout(const TiffFile& file,
                         const PageIndices& pages,
                         const Selection& selection);
/// Each returns false when the file is of another kind.
bool lsm_layout(const TiffFile& file,
                const PageIndices& pages,
                const Selection& selection,
                TiffLayout& layout);
bool stk_layout(const TiffFile& file, const Selection& selection, TiffLayout& layout);
TiffLayout ome_layout(const std::string& path,
                      const std::string& xml,
                      const std::vector<TiffPage>& pages,
                      const Selection& selection);

}  // namespace cytra::io
