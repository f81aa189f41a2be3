#pragma once
// What comes before DCMTK sees a file; for dicom_file.cpp and dicom_pixels.cpp.
#include <cstddef>
#include <string>

#include <dcmtk/config/osconfig.h>
#include <dcmtk/dcmdata/dcxfer.h>

namespace cytra::io {

/// Names the attributes that we read and the codecs to DCMTK, once; its messages are dropped.
void set_up_dcmtk();
/// What a message can show of a file's text: 64 characters of ASCII.
std::string printable(const std::string& text);
/// Walks over a file's elements as DCMTK would, which recurses for each nested sequence and reads
/// what a deflated file claims. Throws: DataError, ConfigError.
struct DicomStart {
  std::size_t bytes = 0;  // of the file
  bool is_bare = false;   // neither preamble nor file meta information: its elements are of
  E_TransferSyntax syntax = EXS_Unknown;
};
DicomStart check_structure(const std::string& path);

}  // namespace cytra::io
