#include "io/dicom/dicom_file.h"

#include <cmath>

#include <dcmtk/config/osconfig.h>
#include <dcmtk/dcmdata/dctk.h>
#include <fmt/format.h>

#include "base/error.h"
#include "base/strings.h"
#include "io/dicom/dicom_setup.h"
#include "io/pixels/format.h"

namespace cytra::io {
namespace {

// The tags (0018,1063) FrameTime and (0018,1065) FrameTimeVector, in FrameIncrementPointer
constexpr Uint16 kTimeGroup = 0x0018, kFrameTime = 0x1063, kFrameTimes = 0x1065;
constexpr unsigned long kLargestElement =
    1024;  // of the values we read; longer ones stay in the file

std::string text_of(DcmItem& item, const DcmTagKey& tag) {
  OFString text;
  if (item.findAndGetOFString(tag, text).bad()) return "";
  return printable(text.c_str());
}

template <std::size_t Size>
bool read_numbers(DcmItem& item, const DcmTagKey& tag, std::array<double, Size>& values) {
  std::array<double, Size> found{};
  for (std::size_t i = 0; i < Size; ++i) {
    Float64 value = 0;
    if (item.findAndGetFloat64(tag, value, i).bad() || !std::isfinite(value)) return false;
    found[i] = value;
  }
  values = found;
  return true;
}

int64_t number_of(DcmItem& item, const DcmTagKey& tag, int64_t otherwise) {
  Uint16 value = 0;
  if (item.findAndGetUint16(tag, value).good()) return value;
  Sint32 wide = 0;
  return item.findAndGetSint32(tag, wide).good() ? wide : otherwise;
}

/// Reads the geometry of a frame from an item; values that the item does not have are kept.
void read_geometry(DcmItem& item, DicomFrame& frame) {
  if (read_numbers(item, DCM_ImagePositionPatient, frame.position)) frame.has_position = true;
  if (read_numbers(item, DCM_ImageOrientationPatient, frame.orientation))
    frame.has_orientation = true;
  read_numbers(item, DCM_PixelSpacing, frame.pixel_mm);
  std::array<double, 1> distance{};
  if (read_numbers(item, DCM_SpacingBetweenSlices, distance) ||
      (frame.plane_mm == 0 && read_numbers(item, DCM_SliceThickness, distance)))
    frame.plane_mm = std::abs(distance[0]);
  std::array<double, 1> slope{}, offset{};
  if (read_numbers(item, DCM_RescaleSlope, slope)) frame.scale.slope = slope[0];
  if (read_numbers(item, DCM_RescaleIntercept, offset)) frame.scale.offset = offset[0];
}

/// Reads the geometry from the functional groups of one frame or of all.
void read_groups(DcmItem& item, DicomFrame& frame) {
  for (const DcmTagKey& tag : {DCM_PlanePositionSequence,
                               DCM_PlaneOrientationSequence,
                               DCM_PixelMeasuresSequence,
                               DCM_PixelValueTransformationSequence}) {
    DcmItem* group = nullptr;
    if (item.findAndGetSequenceItem(tag, group, 0).good() && group != nullptr)
      read_geometry(*group, frame);
  }
}

/// Sets the places of a dose's frames (PS3.3, C.8.8.3.2): at the distance of GridFrameOffsetVector
/// along the normal from the first one, or at these values of z when they do not begin with 0.
/// Without it places are unknown.
void place_frames(DcmItem& item, std::vector<DicomFrame>& frames) {
  std::vector<double> offsets;
  OFString text;
  if (item.findAndGetOFStringArray(DCM_GridFrameOffsetVector, text).good() && !text.empty()) {
    for (const std::string& part : split(std::string_view(text.c_str(), text.size()), '\\')) {
      OFBool is_number = OFFalse;
      offsets.push_back(OFStandard::atof(part.c_str(), &is_number));
      if (!is_number || !std::isfinite(offsets.back())) offsets.back() = NAN;
    }
  }
  const auto& o = frames[0].orientation;
  const bool is_relative = !offsets.empty() && offsets[0] == 0;
  const std::array<double, 3> normal{
      o[1] * o[5] - o[2] * o[4], o[2] * o[3] - o[0] * o[5], o[0] * o[4] - o[1] * o[3]};
  const std::array<double, 3> step = is_relative ? normal : std::array<double, 3>{0, 0, 1};
  for (std::size_t i = 0; i < frames.size(); ++i) {
    DicomFrame& frame = frames[i];
    const double offset = offsets.size() == frames.size() ? offsets[i] - offsets[0] : NAN;
    frame.has_position = frame.has_position && frame.has_orientation && std::isfinite(offset);
    for (std::size_t axis = 0; axis < 3 && frame.has_position; ++axis)
      frame.position[axis] += offset * step[axis];
  }
}

}  // namespace

void DicomFile::fail(const std::string& what, const std::string& expected) const {
  throw DataError("{}: {}, expected {}", path_, what, expected);
}

DicomFile::~DicomFile() = default;

DcmItem& DicomFile::elements() const {
  return *file_->getDataset();
}

DicomFile::DicomFile(const std::string& path) : path_(path) {
  const DicomStart start = check_structure(path);
  file_bytes_ = start.bytes;
  file_ = std::make_unique<DcmFileFormat>();
  const OFCondition result = file_->loadFile(path.c_str(),
                                             start.syntax,
                                             EGL_noChange,
                                             kLargestElement,
                                             start.is_bare ? ERM_dataset : ERM_fileOnly);
  if (result.bad()) {
    fail(fmt::format("the DICOM file can't be read ({})", result.text()),
         "a complete file; it may be truncated or damaged: copy it again");
  }
  DcmDataset& item = *file_->getDataset();
  is_packed_ = DcmXfer(item.getOriginalXfer()).isEncapsulated();
  header_.sop_class = text_of(item, DCM_SOPClassUID);
  header_.uid = text_of(item, DCM_SOPInstanceUID);
  header_.study = text_of(item, DCM_StudyInstanceUID);
  header_.series = text_of(item, DCM_SeriesInstanceUID);
  header_.description = text_of(item, DCM_SeriesDescription);
  header_.instance = number_of(item, DCM_InstanceNumber, 0);
  DcmSequenceOfItems* segments = nullptr;
  if (header_.sop_class == UID_SegmentationStorage &&
      item.findAndGetSequence(DCM_SegmentSequence, segments).good() && segments->card() > 1) {
    fail(fmt::format("a DICOM segmentation of {} segments", segments->card()),
         "an image, or one segment; highdicom and dcmqi convert others to NIfTI");
  }
  read_pixel_format(item);
  read_frames(item);
  check_pixels(item);
}

void DicomFile::read_pixel_format(DcmItem& item) {
  DicomHeader& header = header_;
  header.rows = number_of(item, DCM_Rows, 0);
  header.columns = number_of(item, DCM_Columns, 0);
  header.samples = number_of(item, DCM_SamplesPerPixel, 1);
  if (header.rows < 1 || header.columns < 1) fail("no Rows and Columns", "a DICOM image");
  header.colours = text_of(item, DCM_PhotometricInterpretation);
  if (header.samples != 1 && header.samples != 3)
    fail(fmt::format("{} samples per pixel", header.samples), "1, or 3 of colour");
  if (header.samples == 3 && header.colours != "RGB" && header.colours.compare(0, 3, "YBR") != 0)
    fail("colours as '" + header.colours + "'", "RGB or YBR");
  header.is_planar = header.samples > 1 && number_of(item, DCM_PlanarConfiguration, 0) == 1;
  const bool is_float = item.tagExists(DCM_FloatPixelData),
             is_double = item.tagExists(DCM_DoubleFloatPixelData);
  const int64_t bits = is_float ? 32 : is_double ? 64 : number_of(item, DCM_BitsAllocated, 0);
  if (bits != 1 && bits != 8 && bits != 16 && bits != 32 && !is_double)
    fail(fmt::format("{} bits allocated", bits), "1, 8, 16 or 32");
  is_bitmap_ = bits == 1;
  header.type.bits = std::max(static_cast<int>(bits), 8);
  header.type.kind = is_float || is_double                              ? 'f'
                     : number_of(item, DCM_PixelRepresentation, 0) == 1 ? 'i'
                                                                        : 'u';
  const int64_t stored = is_float || is_double ? bits : number_of(item, DCM_BitsStored, bits);
  if (stored < 1 || stored > bits)
    fail(fmt::format("{} bits stored of {}", stored, bits), "as many as are allocated");
  header.stored_bits = static_cast<int>(stored);
  if (header.samples == 3 && (bits != 8 || stored != 8) && header.colours != "RGB")
    fail(fmt::format("colours as {} of {} bit", header.colours, stored), "8 bit, or RGB");
  if (bits == 1 && (header.samples != 1 || is_packed_))
    fail("compressed or coloured pixels of 1 bit", "plain ones");
  if (item.tagExists(DCM_ModalityLUTSequence))
    fail("values behind a modality look-up table", "RescaleSlope and RescaleIntercept");
}

void DicomFile::read_frames(DcmItem& item) {
  const int64_t count = number_of(item, DCM_NumberOfFrames, 1);
  // A frame takes at least a bit, so a larger claimed number is not allocated.
  if (count < 1 || static_cast<uint64_t>(count) > file_bytes_ * 8)
    fail(fmt::format("{} frames in a file of {} bytes", count, file_bytes_), "as many as it holds");
  check_shape(path_,
              {header_.samples, count, header_.rows, header_.columns},
              dtype_of(header_.type).value_or(Dtype::u8),
              file_bytes_);
  DicomFrame common;
  read_geometry(item, common);
  DcmItem* shared = nullptr;
  if (item.findAndGetSequenceItem(DCM_SharedFunctionalGroupsSequence, shared, 0).good() &&
      shared != nullptr)
    read_groups(*shared, common);
  header_.frames.assign(static_cast<std::size_t>(count), common);
  DcmSequenceOfItems* groups = nullptr;
  if (item.findAndGetSequence(DCM_PerFrameFunctionalGroupsSequence, groups).good() &&
      groups != nullptr && groups->card() == header_.frames.size()) {
    DcmObject* next = nullptr;  // by index each search would begin at the first one
    for (DicomFrame& frame : header_.frames) {
      next = groups->nextInContainer(next);
      if (auto* group = dynamic_cast<DcmItem*>(next)) read_groups(*group, frame);
    }
  } else if (count > 1) {  // one position of the first frame, or of all
    place_frames(item, header_.frames);
  }
  const DcmTagKey pointer = [&] {
    DcmElement* element = nullptr;
    Uint16 group = 0, number = 0;
    if (item.findAndGetElement(DCM_FrameIncrementPointer, element).good() && element != nullptr) {
      DcmTagKey tag;
      if (element->getTagVal(tag).good()) group = tag.getGroup(), number = tag.getElement();
    }
    return DcmTagKey(group, number);
  }();
  header_.is_cine = count > 1 && pointer.getGroup() == kTimeGroup &&
                    (pointer.getElement() == kFrameTime || pointer.getElement() == kFrameTimes);
}

}  // namespace cytra::io
