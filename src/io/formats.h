#pragma once
// The formats of images. Each is one struct that the format's own file adds; nothing else lists
// them.
#include <memory>
#include <string>
#include <vector>

#include "io/reader.h"
#include "io/writer.h"

namespace cytra::io {

/// So much of a file's beginning tells its format.
constexpr std::size_t kHeadBytes = 600;

struct Format {
  std::string name;   // of options: "ome_tiff"
  std::string title;  // of messages: "TIFF"
  /// Formats are tried, and told, by their rank, then their name. DICOM is the first: its files
  /// may begin with those of others. HDF5's and videos' come last.
  int rank = 50;
  /// Of its files' names, in small letters; the longest that fits counts.
  std::vector<std::string> endings;
  bool are_folders = false;   // those names are folders'
  bool are_archives = false;  // "FILE/NAME" is one of several images in a file

  /// Whether a file that begins with `head` (kHeadBytes at most; "" of a folder) is of the format.
  bool (*probe)(const std::string& head, const std::string& path) = nullptr;
  /// Errors as open_image().
  std::unique_ptr<ImageReader> (*open)(const std::string& path,
                                       const Selection& selection) = nullptr;
  bool names_own_axes = false;  // Selection::axes can't
  bool chooses_scene = false;   // of Selection::scene -1; others take 0
  /// As other_files_of(); null: an image is one file.
  std::vector<std::string> (*other_files)(const std::string& path) = nullptr;

  /// What writes it; null: it is only read.
  std::unique_ptr<ImageWriter> (*create)(const std::string& path,
                                         const ImageInfo& info,
                                         const OutputOptions& options) = nullptr;
  std::vector<std::string> written_endings;       // that create() knows
  std::string output_ending;                      // of results: ".ome.tif"
  bool (*fits)(const ImageInfo& info) = nullptr;  // what create() takes; null: any image
  std::string holds;                              // the same in words
  bool holds_time = false;                        // results of all time points in one file
  std::string written_as = "ome_tiff";  // the format that results have for images of this one
};

/// Adds a format, while programs and libraries start: `describe` sets all but the name.
/// Throws: std::logic_error for a name or an ending that another has.
bool add_format(const char* name, void (*describe)(Format& format));
/// All, by rank.
const std::vector<Format>& formats();
/// Null: there is none of that name.
const Format* find_format(const std::string& name);
/// By the ending of a name, whatever its case; null: none that is known.
const Format* format_of_name(const std::string& name);

/// "auto" and the names of those that are written.
std::vector<std::string> output_choices();
/// "ome_tiff, nifti or npy": of formats that are written, those that `wanted` names.
std::string output_names(bool (*wanted)(const Format& format));
/// "TIFF, PNG or NumPy" of all that `wanted` names.
std::string format_titles(const char* last, bool (*wanted)(const Format& format));

/// The last part of a path, without its format's ending: "a" of "in/a.nii.gz", "a_raw" of
/// "a.h5/raw".
std::string stem_of(const std::string& path);

}  // namespace cytra::io
