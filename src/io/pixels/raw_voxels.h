#pragma once
// Reads voxels stored as in memory, after a text header or in files beside it; for the formats
// only.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "io/pixels/format.h"

namespace cytra::io {

struct RawVoxels {
  enum class Packing { none, deflate, text };  // deflate: gzip or zlib; text: numbers
  struct DataFile {
    std::string path;
    uint64_t begin = 0;      // the place of the voxels, or of the packed bytes
    bool is_at_end = false;  // the last bytes of the file, instead
  };
  Packing packing = Packing::none;
  std::vector<DataFile> files;  // of one size, one after the other
  uint64_t skipped = 0;         // bytes before the voxels of each file, once unpacked
  // Set by set_axes():
  Samples samples;
  int64_t of_time = 0;    // bytes from a time point to the next
  std::size_t bytes = 0;  // of all
};

/// Sets the sizes of `info`, and the steps of voxels of the type samples.type, from axes, the
/// fastest first: of "CXYZT", at least X and Y. Throws: DataError for sizes that no file has.
void set_axes(const std::string& path,
              const std::string& names,
              const std::vector<int64_t>& sizes,
              ImageInfo& info,
              RawVoxels& voxels);
/// Opens the image of `info` (of all channels), whose plain voxels are in one file that has them
/// all.
std::unique_ptr<ImageReader> open_mapped(const std::string& path,
                                         const ImageInfo& info,
                                         const RawVoxels& voxels,
                                         const Selection& selection);
/// Opens the image of `info` (of all channels). Throws: as open_image().
std::unique_ptr<ImageReader> open_raw(const std::string& path,
                                      const ImageInfo& info,
                                      const RawVoxels& voxels,
                                      const Selection& selection);

/// The words of a text between blanks.
std::vector<std::string> header_words(const std::string& text);
/// The path of a file that a header names. Throws: DataError unless the name leads to a place below
/// the header's folder.
std::string named_file(const std::string& header, const std::string& name);
/// The path of an existing file that a header names. Throws: what named_file() throws; DataError
/// when it does not exist, or a link leads elsewhere.
std::string find_file(const std::string& header, const std::string& name);
/// The names "a001.raw", "a003.raw" ... for "a%03d.raw 1 9 2"; without numbers 1 to `count`.
/// Throws: DataError for another pattern.
std::vector<std::string> numbered_names(const std::string& header,
                                        const std::string& pattern,
                                        int64_t count);

/// Reads the beginning of a file until it `is_whole`, or all of it. Throws: DataError when that
/// takes more than 4 MiB.
std::string read_text_header(const std::string& path, bool (*is_whole)(const std::string& text));
/// The begin of the line after `lines` others. Throws: DataError when there are fewer.
uint64_t after_lines(const std::string& path,
                     const std::string& file,
                     uint64_t begin,
                     int64_t lines);
/// Reads whole numbers between blanks. Throws: DataError for what is no number; `what` names them.
std::vector<int64_t> whole_numbers(const std::string& path,
                                   const std::string& what,
                                   const std::string& text);
std::vector<double> real_numbers(const std::string& path,
                                 const std::string& what,
                                 const std::string& text);

using WorldVector = std::array<double, 3>;  // right, anterior, superior in mm
/// The geometry from the steps along x, y and, for a stack, z, and the first voxel's place.
/// Without a valid place it has the spacing only.
Geometry placed_geometry(std::vector<WorldVector> steps, const WorldVector& origin);
/// The geometry from distances along x, y and z in mm; distances that are not positive are
/// unknown.
Geometry spaced_geometry(const std::vector<double>& spacing);

/// The place of an image as headers of NRRD and MetaImage state it.
struct LpsGeometry {
  std::size_t dimensions = 3;          // 2: a plane in the world's x and y
  bool is_placed = false;              // steps and origin are known
  std::array<WorldVector, 3> steps{};  // of x, y, z; left, posterior, superior in mm
  WorldVector origin{};
  std::array<double, 3> spacing{};  // of x, y, z in mm, 0: unknown
};
LpsGeometry lps_geometry(const ImageInfo& info);

/// Writes a header and voxels with interleaved channels.
struct RawOutput {
  std::string head;
  std::string data_path;  // "": after the head
  bool is_gzip = false;
};
std::unique_ptr<ImageWriter> create_raw(const std::string& path,
                                        const ImageInfo& info,
                                        const RawOutput& output);

}  // namespace cytra::io
