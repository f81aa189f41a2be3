#pragma once
// The headers of NIfTI-1 and -2, for nifti_*.cpp only. Sources: nifti1.h and nifti2.h of
// https://nifti.nimh.nih.gov.
#include <array>
#include <memory>
#include <string>

#include "io/pixels/stored.h"
#include "io/reader.h"
#include "io/writer.h"

namespace cytra::io {

struct NiftiHeader {
  bool is_second = false;  // NIfTI-2
  bool is_pair = false;    // the pixels are in NAME.img
  std::array<int64_t, 8> dim{};
  int16_t datatype = 0;
  std::array<double, 8> pixdim{};
  int64_t pixels_at = 0;
  double slope = 0, offset = 0;
  int xyzt_units = 0;
  int qform = 0, sform = 0;
  std::array<double, 6> quaternion{};  // b, c, d, x, y, z
  std::array<double, 12> rows{};       // of the sform
  bool is_swapped = false;
};

/// Format::probe and Format::create of NIfTI.
bool is_nifti(const std::string& head, const std::string& path);
std::unique_ptr<ImageWriter> create_nifti(const std::string& path,
                                          const ImageInfo& info,
                                          const OutputOptions& options);

/// Parses a header. Throws: DataError unless `head` begins with a whole one.
NiftiHeader parse_nifti(const std::string& path, const std::string& head);
std::string format_nifti(const NiftiHeader& header);

/// The type of a sample, the number of samples in a voxel (3 for RGB), and the scale.
struct NiftiType {
  StoredType type;
  int64_t samples = 1;
};
NiftiType nifti_type(const std::string& path, const NiftiHeader& header);

Geometry nifti_geometry(const NiftiHeader& header);
/// Sets pixdim, units, qform and sform.
void set_geometry(const Geometry& geometry, NiftiHeader& header);

}  // namespace cytra::io
