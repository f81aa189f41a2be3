#pragma once
// Reads one DICOM file through DCMTK: the type of its pixels, the places of its frames, and each
// frame decoded. The standard:
// https://dicom.nema.org/medical/dicom/current/output/html/part03.html
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "io/pixels/stored.h"

class DcmElement;
class DcmFileFormat;
class DcmItem;

namespace cytra::io {

struct DicomFrame {
  Scale scale;                       // of the stored values
  bool has_position = false;         // then:
  std::array<double, 3> position{};  // of the first pixel's centre, mm; left, posterior, superior
  bool has_orientation = false;      // then:
  std::array<double, 6> orientation{};   // along a row, along a column
  std::array<double, 2> pixel_mm{0, 0};  // between rows, between columns; 0: unknown
  double plane_mm = 0;                   // as the header says; 0: unknown
};

struct DicomHeader {
  std::string sop_class, uid, study;  // SOPClassUID, SOPInstanceUID, StudyInstanceUID
  std::string series, description;    // SeriesInstanceUID, SeriesDescription
  int64_t instance = 0;
  int64_t rows = 0, columns = 0, samples = 1;
  StoredType type;      // of a cell
  int stored_bits = 0;  // the number of used bits of a cell, the lowest ones
  std::string colours;  // PhotometricInterpretation
  bool is_planar = false;
  bool is_cine = false;  // its frames follow each other in time
  std::vector<DicomFrame> frames;

  bool like(const DicomHeader& other) const {
    return rows == other.rows && columns == other.columns && samples == other.samples &&
           type.kind == other.type.kind && type.bits == other.type.bits;
  }
};

/// A DICOM file. Thread: one.
class DicomFile {
 public:
  /// Reads everything except the pixels, and checks that the file can hold them. Throws:
  /// DataError, ConfigError.
  explicit DicomFile(const std::string& path);
  ~DicomFile();
  const DicomHeader& header() const { return header_; }
  DcmItem& elements() const;

  struct Frame {
    StoredType type;
    std::vector<unsigned char> cells;  // of rows, columns and samples; RGB when there are three
    bool is_planar = false;            // samples before rows
  };
  /// Decodes a frame. Throws: DataError.
  Frame decode(int64_t frame) const;

 private:
  void read_pixel_format(DcmItem& item);
  void read_frames(DcmItem& item);
  void check_pixels(DcmItem& item);
  void decode_plain(int64_t frame, Frame& decoded) const;
  void decode_packed(int64_t frame, Frame& decoded) const;
  std::string stream_of(int64_t frame) const;
  void check_jpeg(const std::string& stream, int64_t frame) const;
  [[noreturn]] void fail(const std::string& what, const std::string& expected) const;

  std::string path_;
  std::size_t file_bytes_ = 0;
  std::unique_ptr<DcmFileFormat> file_;
  DicomHeader header_;
  bool is_packed_ = false;        // compressed
  bool is_bitmap_ = false;        // one bit per pixel
  DcmElement* pixels_ = nullptr;  // unless packed
  std::size_t frame_bits_ = 0;    // unless packed
};

}  // namespace cytra::io
