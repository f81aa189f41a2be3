#pragma once
// Which page of a TIFF holds which plane of an image, from its descriptions.
#include <memory>
#include <string>
#include <vector>

#include "io/reader.h"
#include "io/tiff/file.h"

namespace cytra::io {

struct TiffLayout {
  int64_t scenes = 1;
  std::vector<int64_t> own_scenes;  // those with planes in this file; empty: all
  // Of the scene that was asked for:
  int64_t channels = 1, planes = 1, timepoints = 1;  // channels without the samples within a page
  std::vector<std::size_t> pages;  // of (time point, channel, plane): index to the file's pages
  /// `pages` are numbers of planes that follow each other at the pixels of contiguous_page.
  bool is_contiguous = false;
  std::size_t contiguous_page = 0;
  /// Of each smaller level that lies in the file's chain of pages: as `pages`.
  std::vector<std::vector<std::size_t>> smaller;
  Geometry geometry;
  std::vector<std::string> channel_names;
  /// Of an OME image in several files: their paths, this one's first, and of each plane in `pages`
  /// the one that holds it. Else empty.
  std::vector<std::string> files;
  std::vector<std::size_t> file_of;
};

/// Understands OME-XML, ImageJ, tifffile's JSON, Zeiss LSM, MetaMorph STK and Aperio; else pages of
/// one size are the planes of a scene. Scene -1: the first, of an OME-TIFF the first with a plane
/// in this file. Throws: DataError for a scene that is not there, axes that are not the file's, or
/// what contradicts the pages.
TiffLayout tiff_layout(const TiffFile& file, const Selection& selection);

/// The image that a layout finds in a file, and the one that it finds in several files.
/// Throws: as open_image.
std::unique_ptr<ImageReader> open_tiff_layout(std::shared_ptr<const TiffFile> file,
                                              const TiffLayout& layout,
                                              const Selection& selection);
std::unique_ptr<ImageReader> open_ome_set(std::shared_ptr<const TiffFile> file,
                                          const TiffLayout& layout,
                                          const Selection& selection);

/// Of the path of an OME-TIFF: the file that holds the first plane of its image, maybe another one.
/// The path itself where that can't be said.
std::string begin_of_ome_set(const std::string& path);
/// As other_files_of() in reader.h. Throws: as files_of_ome_xml().
std::vector<std::string> ome_other_files(const std::string& path);
/// What the OME-XML in a file names beside it: files with planes, and the one with the whole text.
/// Throws: DataError for a text that is none.
std::vector<std::string> files_of_ome_xml(const std::string& path, const std::string& xml);
/// False when the file is no TIFF; else its scenes as scenes_of() in io/image_folder.h.
bool tiff_scenes(const std::string& path, std::vector<int64_t>& scenes);

// For *_layout.cpp:
struct TiffAxis {
  char name;  // 'C', 'Z' or 'T'
  int64_t size;
};
using PageIndices = std::vector<std::size_t>;  // of a file's pages
/// The file's axes with the names that Selection::axes gives them. Throws: as plane_axes().
std::vector<TiffAxis> named(const std::string& path,
                            const std::string& names,
                            std::vector<TiffAxis> axes);
/// Sets sizes and pages for pages 0, 1 ... `count` - 1 that run over `axes`, the slowest first.
void place(const std::string& path,
           const std::vector<TiffAxis>& axes,
           int64_t count,
           TiffLayout& layout);
/// Takes a layout's pages 0, 1, ... to those at `indices`.
void map_to(const PageIndices& indices, TiffLayout& layout);
/// Whether a file can hold so many planes without compression.
bool fits(const TiffPage& page, int64_t planes, std::size_t file_bytes);
int64_t whole_number(const std::string& path, const std::string& what, const std::string& text);
void check_scene(const std::string& path, int64_t scene, std::size_t scenes);
TiffLayout imagej_layout(const TiffFile& file,
                         const PageIndices& pages,
                         const Selection& selection);
/// False when the file is none.
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
