// Writes labels of a DICOM series as a segmentation (PS3.3, A.51), with a frame for each segment
// of each plane where it has pixels; exported by libcytra_dicom.so. The elements are encoded here:
// DCMTK's dcmseg holds all frames in memory, and needs the file of its dictionary.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <dcmtk/config/osconfig.h>
#include <dcmtk/dcmdata/dctk.h>
#include <fmt/format.h>

#include "base/error.h"
#include "base/escape.h"
#include "base/files.h"
#include "base/strings.h"
#include "base/version.h"
#include "io/dicom/dicom_series.h"
#include "io/dicom/dicom_setup.h"
#include "io/fingerprint.h"
#include "io/input_file.h"
#include "io/module.h"
#include "io/pixels/format.h"

namespace cytra::io {
namespace {

constexpr uint32_t kMostSegments = 65535;    // SegmentNumber has 16 bits
constexpr uint64_t kMostBytes = 0xfffffffe;  // PixelData has a length of 32 bits

std::string little_endian(uint64_t number, int bytes) {
  std::string text;
  for (; bytes > 0; --bytes, number >>= 8) text += static_cast<char>(number & 0xff);
  return text;
}

/// An element in explicit VR, little-endian (PS3.5, 7.1.2).
std::string element(const DcmTagKey& tag, const std::string& type, std::string value) {
  if (value.size() % 2 > 0) value += type == "UI" ? '\0' : ' ';
  const bool is_long = type == "SQ" || type == "OB";
  return little_endian(tag.getGroup(), 2) + little_endian(tag.getElement(), 2) + type +
         std::string(is_long ? 2 : 0, '\0') + little_endian(value.size(), is_long ? 4 : 2) + value;
}
std::string item(const std::string& elements) {
  return little_endian(0xe000fffe, 4) + little_endian(elements.size(), 4) + elements;
}
std::string sequence(const DcmTagKey& tag, const std::string& elements) {
  return element(tag, "SQ", item(elements));
}
using Code = std::array<const char*, 3>;
constexpr Code kTissue{"85756007", "SCT", "Tissue"}, kDerivation{"113076", "DCM", "Segmentation"},
    kSourceImage{"121322", "DCM", "Source image for image processing operation"};
std::string code(const DcmTagKey& tag, const Code& code) {
  return sequence(tag,
                  element(DCM_CodeValue, "SH", code[0]) +
                      element(DCM_CodingSchemeDesignator, "SH", code[1]) +
                      element(DCM_CodeMeaning, "LO", code[2]));
}

/// Numbers as DS, which has 16 characters for each: exact where these are enough.
template <std::size_t Count>
std::string decimals(const std::array<double, Count>& numbers) {
  std::vector<std::string> texts;
  for (const double number : numbers) {
    std::string& text = texts.emplace_back(fmt::format("{}", number));
    for (int digits = 16; text.size() > 16; --digits) text = fmt::format("{:.{}g}", number, digits);
  }
  return join(texts, "\\");
}

/// A UID by PS3.5, B.2, that is equal for equal texts: a second run writes the same file.
std::string uid_of(const std::string& text) {
  __extension__ using Number = unsigned __int128;
  const std::string hex = fingerprint(text);
  const auto half = [&](std::size_t at) { return std::stoull(hex.substr(at, 16), nullptr, 16); };
  return fmt::format("2.25.{}", Number{half(0)} << 64 | half(16));
}

class DicomSegmentation final : public ImageWriter {
 public:
  DicomSegmentation(const std::string& path, const ImageInfo& info, const OutputOptions& options)
      : ImageWriter(path, info),
        options_(options),
        stack_(read_stack(options.source, options.selection.scene, scenes_)),
        pixels_(static_cast<std::size_t>(info.shape[2] * info.shape[3])),
        frames_(path + ".frames"),
        bits_(path + ".bits"),
        labels_(static_cast<std::size_t>(info.shape[0]) * pixels_),
        most_(info.shape[0] > 1 ? static_cast<uint32_t>(info.shape[0]) : 1) {
    check_grid();
    const int64_t begin = std::max<int64_t>(options.selection.timepoint, 0) * stack_.planes +
                          std::max<int64_t>(options.selection.plane, 0);
    slices_.assign(stack_.slices.begin() + begin, stack_.slices.begin() + begin + info.shape[1]);
    for (const DicomSlice& slice : slices_) {
      is_placed_ = is_placed_ && slice.where.has_position && slice.where.has_orientation &&
                   slice.where.pixel_mm[0] > 0;
      const DicomHeader& own = stack_.headers[slice.file];
      if (own.uid.empty() || own.sop_class.empty() || own.series.empty() || own.study.empty())
        fail("no UID of an instance, its class, series or study", "a series of a scanner");
    }
  }

 private:
  [[noreturn]] void fail(const std::string& what, const std::string& expected) const {
    throw DataError(
        "{}: {}; expected {}, or predict.format=nifti", options_.source, what, expected);
  }

  /// Checks that the labels are in the voxels of the series.
  void check_grid() const {
    const int64_t plane = options_.selection.plane;
    const Geometry& given = info().geometry;
    Geometry own = stack_.geometry;
    std::array<int64_t, 4> shape{
        info().shape[0], stack_.planes, stack_.header.rows, stack_.header.columns};
    if (plane >= 0) own = moved(own, {{plane, 0, 0}, {shape[1] = 1, shape[2], shape[3]}});
    const bool has_affine = own.has_affine();  // else the other may be a substitute
    bool is_same = shape == info().shape;
    for (std::size_t i = 0; i < 12 && given.has_affine(); ++i) {
      const double value = has_affine ? own.affine[i] : i % 5 == 0 ? std::abs(given.affine[i]) : 0;
      is_same = is_same && std::abs(value - given.affine[i]) <= 1e-4 * (1 + std::abs(value));
    }
    if (!is_same)
      fail("the result is in other voxels than the series, whose planes a DICOM segmentation has",
           "predict.original_grid=true");
  }

  void put(int64_t first, const Image& rows) override {
    const auto [c, z, y, x] = info().shape;
    const int64_t planes = is_stack() ? rows.shape[1] : 1;
    const auto part = static_cast<std::size_t>(rows.shape[2] * x);  // pixels of a plane
    const std::size_t begin = is_stack() ? 0 : static_cast<std::size_t>(first * x);
    for (int64_t i = 0; i < planes; ++i) {
      for (int64_t k = 0; k < c; ++k) {
        with_type(rows.dtype, [&](auto example) {
          using Label = decltype(example);
          const Label* from = reinterpret_cast<const Label*>(rows.pixels.data()) +
                              static_cast<std::size_t>(k * planes + i) * part;
          uint32_t* into = labels_.data() + static_cast<std::size_t>(k) * pixels_ + begin;
          const auto segment = static_cast<uint32_t>(k + 1);  // that a channel is
          for (std::size_t n = 0; n < part; ++n)
            into[n] = c > 1 && from[n] != Label{} ? segment : static_cast<uint32_t>(from[n]);
        });
      }
      if (is_stack() || first + rows.shape[2] == y) add_plane(is_stack() ? first + i : 0);
    }
  }

  /// Adds the frames of a plane, whose labels are complete.
  void add_plane(int64_t plane) {
    std::vector<std::pair<std::size_t, std::size_t>> ranges(kMostSegments + 1);
    for (std::size_t i = 0; i < labels_.size(); ++i) {
      if (labels_[i] > kMostSegments)
        fail(fmt::format("label {}, and segments have numbers to {}", labels_[i], kMostSegments),
             "fewer objects");
      auto& [begin, end] = ranges[labels_[i]];
      if (end == 0) begin = i;
      end = i + 1;
    }
    for (uint32_t segment = 1; segment <= kMostSegments; ++segment) {
      const auto [begin, end] = ranges[segment];
      if (end > 0) add_frame(plane, segment, begin, end);
    }
  }

  /// Adds a frame, whose pixels are labels from `begin` to `end`. Bits follow those of the frame
  /// before without a gap, the first pixel in the lowest one.
  void add_frame(int64_t plane, uint32_t segment, std::size_t begin, std::size_t end) {
    const std::size_t carried = count_++ * pixels_ % 8, bytes = (carried + pixels_) / 8;
    if (bytes_of_pixels() > kMostBytes)
      fail("more than 4 GB of frames, which plain pixels of DICOM can't have", "fewer objects");
    most_ = std::max(most_, segment);
    std::string bits(bytes + 1, '\0');
    bits[0] = last_;
    for (std::size_t i = begin; i < end; ++i) {
      if (labels_[i] != segment) continue;
      const std::size_t at = carried + i % pixels_;
      bits[at / 8] = static_cast<char>(bits[at / 8] | 1 << at % 8);
    }
    last_ = bits.back();
    bits_.write(bits.data(), bytes);
    const std::string frame = frame_item(plane, segment);
    frames_.write(frame);
    content_ = fingerprint(content_ + fingerprint(bits) + frame);
  }
  uint64_t bytes_of_pixels() const { return (count_ * pixels_ + 15) / 16 * 2; }

  std::string frame_item(int64_t plane, uint32_t segment) const {
    const DicomSlice& slice = slices_[static_cast<std::size_t>(plane)];
    const std::string number = little_endian(static_cast<uint64_t>(plane + 1), 4);
    std::string content =
                    element(DCM_DimensionIndexValues, "UL", little_endian(segment, 4) + number),
                place, image = reference(slice.file);
    if (is_placed_) {
      const std::string position = decimals(slice.where.position);
      place =
          sequence(DCM_PlanePositionSequence, element(DCM_ImagePositionPatient, "DS", position));
    } else {
      content.insert(
          0, element(DCM_StackID, "SH", "1") + element(DCM_InStackPositionNumber, "UL", number));
    }
    if (stack_.headers[slice.file].frames.size() > 1)
      image += element(DCM_ReferencedFrameNumber, "IS", std::to_string(slice.frame + 1));
    image += element(DCM_SpatialLocationsPreserved, "CS", "YES") +
             code(DCM_PurposeOfReferenceCodeSequence, kSourceImage);
    return item(sequence(DCM_DerivationImageSequence,
                         sequence(DCM_SourceImageSequence, image) +
                             code(DCM_DerivationCodeSequence, kDerivation)) +
                sequence(DCM_FrameContentSequence, content) + place +
                sequence(DCM_SegmentIdentificationSequence,
                         element(DCM_ReferencedSegmentNumber, "US", little_endian(segment, 2))));
  }
  std::string reference(std::size_t file) const {
    return element(DCM_ReferencedSOPClassUID, "UI", stack_.headers[file].sop_class) +
           element(DCM_ReferencedSOPInstanceUID, "UI", stack_.headers[file].uid);
  }

  void close() override {
    if (count_ == 0) add_frame(0, 1, 0, 0);  // there has to be one
    const std::string end{last_, '\0'};
    bits_.write(end.data(), bytes_of_pixels() - count_ * pixels_ / 8);
    set_series();
    set_image();
    for (const auto& [tag, bytes] : data_) content_ += bytes;
    const std::string own = uid_of("file " + content_);
    set(DCM_SOPInstanceUID, "UI", own);
    set(DCM_SeriesInstanceUID, "UI", uid_of("series " + content_));
    const std::string dimensions =
        element(DCM_DimensionOrganizationUID, "UI", uid_of("dimensions " + content_));
    const auto dimension = [&](uint32_t tag, uint32_t sequence) {
      return item(dimensions + element(DCM_DimensionIndexPointer, "AT", little_endian(tag, 4)) +
                  element(DCM_FunctionalGroupPointer, "AT", little_endian(sequence, 4)));
    };
    set(DCM_DimensionOrganizationSequence, "SQ", item(dimensions));
    set(DCM_DimensionIndexSequence,
        "SQ",
        dimension(0x000b0062, 0x000a0062) +  // ReferencedSegmentNumber, then the place
            (is_placed_ ? dimension(0x00320020, 0x91130020) : dimension(0x90570020, 0x91110020)));
    const std::string meta =
        element(DCM_FileMetaInformationVersion, "OB", std::string("\0\1", 2)) +
        element(DCM_MediaStorageSOPClassUID, "UI", UID_SegmentationStorage) +
        element(DCM_MediaStorageSOPInstanceUID, "UI", own) +
        element(DCM_TransferSyntaxUID, "UI", UID_LittleEndianExplicitTransferSyntax) +
        element(DCM_ImplementationClassUID, "UI", uid_of("Cytra"));
    AtomicFile file(path());
    file.write(std::string(128, '\0') + "DICM" +
               element(DCM_FileMetaInformationGroupLength, "UL", little_endian(meta.size(), 4)) +
               meta);
    for (const auto& [tag, bytes] : data_) file.write(bytes);
    file.write(std::string("\x00\x52\x30\x92SQ\0\0\xff\xff\xff\xff", 12));
    copy(frames_, file);
    file.write(little_endian(0xe0ddfffe, 8) + std::string("\xe0\x7f\x10\x00OB\0\0", 8) +
               little_endian(bytes_of_pixels(), 4));
    copy(bits_, file);
    file.commit();
  }

  static void copy(const AtomicFile& from, AtomicFile& to) {
    const InputFile file(from.temporary());
    std::string buffer(std::size_t{1} << 20, '\0');
    for (uint64_t at = 0; at < file.bytes();) {
      const int64_t count = file.read_at(at, buffer.data(), buffer.size());
      to.write(buffer.data(), static_cast<std::size_t>(count));
      at += static_cast<uint64_t>(count);
    }
  }

  void set(const DcmTagKey& tag, const std::string& type, const std::string& value) {
    data_[tag] = element(tag, type, value);
  }

  /// Sets what patient, study and place have in common with the series; segments; shared groups.
  void set_series() {
    const DicomFile file(stack_.files[0]);
    DcmItem& source = file.elements();
    const auto of_source = [&](const DcmTagKey& tag, const char* otherwise) {
      OFString text;
      source.findAndGetOFStringArray(tag, text);
      return std::string(text.empty() ? otherwise : text.c_str());
    };
    std::vector<std::string> names;
    bool is_ascii = true;
    for (uint32_t segment = 1; segment <= most_; ++segment) {
      for (const char letter : names.emplace_back(name_of(segment)))
        is_ascii = is_ascii && letter >= 0;
    }
    const bool is_utf8 = !is_ascii && source.convertToUTF8().good();
    for (const Attribute& one : attributes()) {
      if (one.of_series == 'e' || (one.of_series == 'k' && source.tagExists(one.tag)))
        set(one.tag, DcmVR(one.type).getVRName(), of_source(one.tag, ""));
    }
    if (is_utf8) set(DCM_SpecificCharacterSet, "CS", "ISO_IR 192");
    set(DCM_ContentDate, "DA", of_source(DCM_StudyDate, "19000101"));
    set(DCM_ContentTime, "TM", of_source(DCM_StudyTime, "000000"));
    set(DCM_LossyImageCompression, "CS", of_source(DCM_LossyImageCompression, "00"));
    if (is_placed_) {
      const std::string place = uid_of("place " + stack_.header.series);
      set(DCM_FrameOfReferenceUID, "UI", of_source(DCM_FrameOfReferenceUID, place.c_str()));
    }
    std::string items;
    for (std::size_t i = 0; i < names.size(); ++i) {
      items += item(
          code(DCM_SegmentedPropertyCategoryCodeSequence, kTissue) +
          element(DCM_SegmentNumber, "US", little_endian(i + 1, 2)) +
          element(DCM_SegmentLabel, "LO", is_ascii || is_utf8 ? names[i] : printable(names[i])) +
          element(DCM_SegmentAlgorithmType, "CS", "AUTOMATIC") +
          element(DCM_SegmentAlgorithmName, "LO", "Cytra") +
          code(DCM_SegmentedPropertyTypeCodeSequence, kTissue));
    }
    set(DCM_SegmentSequence, "SQ", items);
    const DicomFrame& where = slices_[0].where;  // what all frames have in common
    const double apart = stack_.geometry.spacing_um[0] / 1000;
    const std::string distance = apart > 0 ? decimals(std::array{apart}) : "",
                      thickness = of_source(DCM_SliceThickness, distance.c_str());
    const std::string measures =
        (thickness.empty() ? "" : element(DCM_SliceThickness, "DS", thickness)) +
        (distance.empty() ? "" : element(DCM_SpacingBetweenSlices, "DS", distance)) +
        element(DCM_PixelSpacing, "DS", decimals(where.pixel_mm));
    std::string shared = element(DCM_ImageOrientationPatient, "DS", decimals(where.orientation));
    shared = is_placed_ ? sequence(DCM_PlaneOrientationSequence, shared) : "";
    if (where.pixel_mm[0] > 0) shared += sequence(DCM_PixelMeasuresSequence, measures);
    set(DCM_SharedFunctionalGroupsSequence, "SQ", item(shared));
  }

  /// The name of an object, of a class by its label, or of a channel, as LO has it.
  std::string name_of(int64_t segment) const {
    const bool is_channel = info().shape[0] > 1;
    const int64_t number = is_channel ? segment - 1 : segment;
    if (options_.are_objects && !is_channel) return fmt::format("object_{}", number);
    if (!options_.class_name) return fmt::format("class_{}", number);
    std::string name = options_.class_name(number);
    for (char& letter : name)
      if (is_control(letter) || letter == '\\') letter = '_';
    while (name.size() > 64 || !is_utf8(name)) name.pop_back();
    return name;
  }

  void set_image() {
    set(DCM_SOPClassUID, "UI", UID_SegmentationStorage);
    set(DCM_Modality, "CS", "SEG");
    set(DCM_SeriesNumber, "IS", "1000");
    set(DCM_SeriesDescription, "LO", "Segmentation");
    set(DCM_Manufacturer, "LO", "Cytra");
    set(DCM_ManufacturerModelName, "LO", "Cytra");
    set(DCM_DeviceSerialNumber, "LO", "0");
    set(DCM_SoftwareVersions, "LO", version());
    set(DCM_InstanceNumber, "IS", "1");
    set(DCM_ImageType, "CS", "DERIVED\\PRIMARY");
    set(DCM_PatientOrientation, "CS", "");
    set(DCM_ContentLabel, "CS", "SEGMENTATION");
    set(DCM_ContentDescription, "LO", "");
    set(DCM_ContentCreatorName, "PN", "");
    set(DCM_SegmentationType, "CS", "BINARY");
    set(DCM_SegmentsOverlap, "CS", info().shape[0] > 1 ? "UNDEFINED" : "NO");
    set(DCM_PhotometricInterpretation, "CS", "MONOCHROME2");
    set(DCM_NumberOfFrames, "IS", std::to_string(count_));
    const auto number = [&](const DcmTagKey& tag, int64_t value) {
      set(tag, "US", little_endian(static_cast<uint64_t>(value), 2));
    };
    number(DCM_Rows, info().shape[2]);
    number(DCM_Columns, info().shape[3]);
    number(DCM_SamplesPerPixel, 1);
    number(DCM_BitsAllocated, 1);
    number(DCM_BitsStored, 1);
    number(DCM_HighBit, 0);
    number(DCM_PixelRepresentation, 0);
    std::set<std::size_t> files;
    std::string all;
    for (const DicomSlice& slice : slices_)
      if (files.insert(slice.file).second) all += item(reference(slice.file));
    set(DCM_ReferencedSeriesSequence,
        "SQ",
        item(element(DCM_ReferencedInstanceSequence, "SQ", all) +
             element(DCM_SeriesInstanceUID, "UI", stack_.header.series)));
  }

  const OutputOptions options_;
  int64_t scenes_ = 1;
  const DicomStack stack_;
  const std::size_t pixels_;               // in a plane
  AtomicFile frames_, bits_;               // what follows the segments, which are known last
  std::vector<uint32_t> labels_;           // a plane (C, Y, X); of several channels, their segments
  uint32_t most_;                          // segments
  std::vector<DicomSlice> slices_;         // one for each plane of the labels
  bool is_placed_ = true;                  // each frame has a place
  uint64_t count_ = 0;                     // frames
  char last_ = '\0';                       // the bits of a byte that is not complete
  std::string content_;                    // a fingerprint of the frames
  std::map<DcmTagKey, std::string> data_;  // the elements before those of frames
};

}  // namespace
}  // namespace cytra::io

extern "C" cytra::io::ImageWriter* cytra_create_image(const std::string& path,
                                                      const cytra::io::ImageInfo& info,
                                                      const cytra::io::OutputOptions& options) {
  return new cytra::io::DicomSegmentation(path, info, options);
}
