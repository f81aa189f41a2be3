#pragma once
// Sorts the slices of a DICOM file, or of a folder, into stacks by their places.
#include <cstdint>
#include <string>
#include <vector>

#include "io/dicom/dicom_file.h"
#include "io/image.h"

namespace cytra::io {

struct DicomSlice {
  std::size_t file = 0;  // of DicomStack::files
  int64_t frame = 0;     // of that file
  DicomFrame where;
};

struct DicomStack {
  DicomHeader header;  // of the first file
  std::vector<std::string> files;
  std::vector<DicomHeader> headers;  // one for each file
  std::size_t file_bytes = 0;        // of all
  std::vector<DicomSlice> slices;    // of (time point, plane)
  int64_t planes = 1, timepoints = 1;
  Dtype dtype = Dtype::u8;  // holds what the slices' scales give
  Geometry geometry;
};

/// Reads stack number `scene`, or -1 for the only one. Stacks are slices of one series, size and
/// orientation, ordered by the series' UID and then by instance number. Sets `scenes` to their
/// number. Throws: DataError (several and none is chosen: lists them; slices that make no stack),
/// ConfigError.
DicomStack read_stack(const std::string& path, int64_t scene, int64_t& scenes);

}  // namespace cytra::io
