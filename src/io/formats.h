#pragma once
// The formats of images. Each is one struct that the format's own file adds; nothing else lists
// them.
#include <memory>
#include <string>
#include <vector>

#include "io/reader.h"
#include "io/writer.h"

namespace cytra::io {

/// The number of a file's first bytes from which its format is found.
constexpr std::size_t kHeadBytes = 600;

struct Format {
  std::string name;   // options have it: "ome_tiff"
  std::string title;  // messages have it: "TIFF"
  /// The rank by which formats are tried and listed, then by name. DICOM is the first, as its
  /// files may begin like those of other formats. HDF5 and videos come last.
  int rank = 50;
  /// The endings of its files' names, in small letters; the longest that fits counts.
  std::vector<std::string> endings;
  bool are_folders = false;   // the names are those of folders
  bool are_archives = false;  // "FILE/NAME" is one of several images in a file
  /// What HTTP calls a file that holds an image alone and is safe to take from strangers; "": none.
  std::string media_type;

  /// Whether a file that begins with `head` (kHeadBytes at most; "" of a folder) is of the format.
  bool (*probe)(const std::string& head, const std::string& path) = nullptr;
  /// Opens an image. Throws: what open_image() throws.
  std::unique_ptr<ImageReader> (*open)(const std::string& path,
                                       const Selection& selection) = nullptr;
  bool names_own_axes = false;  // Selection::axes can't
  bool chooses_scene = false;   // what Selection::scene -1 means; others take scene 0
  /// The other files of an image, as other_files_of(); null: an image is one file.
  std::vector<std::string> (*other_files)(const std::string& path) = nullptr;

  /// Makes a writer; null: the format is only read.
  std::unique_ptr<ImageWriter> (*create)(const std::string& path,
                                         const ImageInfo& info,
                                         const OutputOptions& options) = nullptr;
  std::vector<std::string> written_endings;       // that create() knows
  std::string output_ending;                      // results have it: ".ome.tif"
  bool (*fits)(const ImageInfo& info) = nullptr;  // whether create() takes the image; null: any
                                                  // image
  std::string holds;                              // the images that create() takes, in words
  bool holds_time = false;                        // a file can hold all time points
  /// Throws: DataError unless results of this image can be written; null: those of any can.
  void (*expect_source)(const std::string& source) = nullptr;
  /// What a written file can say of an image's position; create_image() warns where more is known.
  enum class Position { nothing, origin, direction } position = Position::nothing;
  /// The format of results for images of this one; "": itself where it is written, else OME-TIFF.
  std::string written_as;
};

/// Adds a format, while programs and libraries start: `describe` sets everything except the name.
/// Throws: std::logic_error for a name or an ending that another has.
bool add_format(const char* name, void (*describe)(Format& format));
/// All formats, by rank.
const std::vector<Format>& formats();
/// The format of a name; null: there is none.
const Format* find_format(const std::string& name);
/// The format by the ending of a name in any case; null: unknown.
const Format* format_of_name(const std::string& name);

/// The choices "auto" and the names of formats that are written.
std::vector<std::string> output_choices();
/// The names of the `wanted` formats that are written: "ome_tiff, nifti or npy".
std::string output_names(bool (*wanted)(const Format& format));
/// The titles of all `wanted` formats: "TIFF, PNG or NumPy".
std::string format_titles(const char* last, bool (*wanted)(const Format& format));

/// The last part of a path, without its format's ending: "a" for "in/a.nii.gz", "a_raw" for
/// "a.h5/raw".
std::string stem_of(const std::string& path);

}  // namespace cytra::io
