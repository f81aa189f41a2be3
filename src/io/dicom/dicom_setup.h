#pragma once
// Prepares DCMTK, and checks a file before DCMTK reads it; for dicom_file.cpp and
// dicom_pixels.cpp.
#include <cstddef>
#include <string>
#include <vector>

#include <dcmtk/config/osconfig.h>
#include <dcmtk/dcmdata/dctag.h>
#include <dcmtk/dcmdata/dcxfer.h>

namespace cytra::io {

/// The type of an attribute, which files with implicit VR or the type UN leave to a dictionary.
/// DCMTK's own dictionary is a file that may be missing.
struct Attribute {
  DcmTagKey tag;
  DcmEVR type;
  char of_series = '-';  // a segmentation has it as its series, k: where that has it, e: else empty
};
const std::vector<Attribute>& attributes();
/// Registers the attributes that we read and the codecs with DCMTK, once; its messages are
/// dropped.
void set_up_dcmtk();
/// Makes a file's text fit for a message: at most 64 characters of ASCII.
std::string printable(const std::string& text);
/// Checks a file's elements beforehand, since DCMTK recurses for each nested sequence and reads as
/// much as a deflated file claims. Throws: DataError, ConfigError.
struct DicomStart {
  std::size_t bytes = 0;  // of the file
  bool is_bare = false;   // neither preamble nor file meta information: its elements are of
  E_TransferSyntax syntax = EXS_Unknown;
};
DicomStart check_structure(const std::string& path);

}  // namespace cytra::io
