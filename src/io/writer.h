#pragma once
// Writes an image of any format part by part; it may be larger than memory.
#include <functional>
#include <memory>
#include <string>

#include "io/reader.h"

namespace cytra::io {

struct OutputOptions {
  bool is_labels = false;  // values that have no mean: smaller levels of a pyramid take one of them
  bool is_zarr_v3 = false;  // OME-Zarr 0.5 instead of 0.4
  // For DICOM, whose labels refer to the image that they are of.
  std::string source = {};
  Selection selection = {};
  bool are_objects = false;  // labels are of objects, not of classes
  /// The name of a class by its label, of several channels by its channel; null: none has one.
  std::function<std::string(int64_t number)> class_name = {};
};

/// Writes an image. It appears at its path, whole, by finish(); without that nothing is left.
/// Holds a few rows of blocks in memory, whatever the image. Thread: one.
class ImageWriter {
 public:
  virtual ~ImageWriter() = default;
  ImageWriter& operator=(ImageWriter&&) = delete;
  const ImageInfo& info() const { return info_; }
  /// The size of the outer axis: Z of a stack, Y of a 2D image.
  int64_t rows() const { return info_.shape[axis_ + 1]; }
  /// Writes all channels of whole rows of the outer axis: from the first to the last, each once,
  /// any number at a time; several time points follow each other. Type, shape and values of
  /// `pixels` are used. Throws: IoError; std::logic_error for other rows or pixels.
  void write(const Region& region, const Image& pixels);
  /// Writes the next rows.
  void write(const Image& pixels);
  /// Finishes the image. Throws: what AtomicFile throws; std::logic_error when rows are missing.
  void finish();

 protected:
  /// Begins an image. `holds_time`: as Format's. Throws: std::logic_error for an `info` without
  /// voxels, with time points that the format does not hold, or with names that are not as many as
  /// channels.
  ImageWriter(std::string path, ImageInfo info, bool holds_time = false);
  const std::string& path() const { return path_; }
  bool is_stack() const { return axis_ == 0; }
  int64_t timepoint() const { return timepoint_; }  // that is written

 private:
  virtual void put(int64_t first, const Image& rows) = 0;
  virtual void close() = 0;

  std::string path_;
  ImageInfo info_;
  std::size_t axis_;                  // the outer one, of Z, Y, X
  int64_t next_ = 0, timepoint_ = 0;  // next_: row
  bool is_failed_ = false;
};

/// Makes a writer by the ending of `path`, in any case, of a format that is written
/// (io/formats.h): .tif in tiles with a pyramid above 2048 pixels a side, BigTIFF above 4 GB,
/// .zarr with a pyramid. Type, shape, geometry and channel names of `info` are used; values that
/// the format can't hold are left out. Throws: ConfigError (another ending; as AtomicFile),
/// DataError (an image that the format can't hold: PNG one plane, or three for RGB, of uint8 or
/// uint16).
std::unique_ptr<ImageWriter> create_image(const std::string& path,
                                          const ImageInfo& info,
                                          const OutputOptions& options = {});

}  // namespace cytra::io
