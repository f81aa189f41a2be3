#include "io/dicom/dicom_setup.h"

#include <string_view>
#include <vector>

#include <dcmtk/config/osconfig.h>
#include <dcmtk/dcmdata/dcdicent.h>
#include <dcmtk/dcmdata/dctk.h>
#include <dcmtk/dcmjpeg/djdecode.h>
#include <dcmtk/dcmjpls/djdecode.h>
#include <dcmtk/oflog/oflog.h>
#include <fmt/format.h>
#include <zlib.h>

#include "base/error.h"
#include "io/input_file.h"
#include "io/module.h"
#include "io/pixels/format.h"

namespace cytra::io {

const std::vector<Attribute>& attributes() {
  static const std::vector<Attribute> all{{DCM_SOPClassUID, EVR_UI},
                                          {DCM_SOPInstanceUID, EVR_UI},
                                          {DCM_SeriesInstanceUID, EVR_UI},
                                          {DCM_SeriesDescription, EVR_LO},
                                          {DCM_InstanceNumber, EVR_IS},
                                          {DCM_ImagePositionPatient, EVR_DS},
                                          {DCM_ImageOrientationPatient, EVR_DS},
                                          {DCM_PixelSpacing, EVR_DS},
                                          {DCM_SliceThickness, EVR_DS},
                                          {DCM_SpacingBetweenSlices, EVR_DS},
                                          {DCM_GridFrameOffsetVector, EVR_DS},
                                          {DCM_SamplesPerPixel, EVR_US},
                                          {DCM_PhotometricInterpretation, EVR_CS},
                                          {DCM_PlanarConfiguration, EVR_US},
                                          {DCM_NumberOfFrames, EVR_IS},
                                          {DCM_FrameIncrementPointer, EVR_AT},
                                          {DCM_Rows, EVR_US},
                                          {DCM_Columns, EVR_US},
                                          {DCM_BitsAllocated, EVR_US},
                                          {DCM_BitsStored, EVR_US},
                                          {DCM_HighBit, EVR_US},
                                          {DCM_PixelRepresentation, EVR_US},
                                          {DCM_RescaleIntercept, EVR_DS},
                                          {DCM_RescaleSlope, EVR_DS},
                                          {DCM_ModalityLUTSequence, EVR_SQ},
                                          {DCM_SharedFunctionalGroupsSequence, EVR_SQ},
                                          {DCM_PerFrameFunctionalGroupsSequence, EVR_SQ},
                                          {DCM_PlanePositionSequence, EVR_SQ},
                                          {DCM_PlaneOrientationSequence, EVR_SQ},
                                          {DCM_PixelMeasuresSequence, EVR_SQ},
                                          {DCM_PixelValueTransformationSequence, EVR_SQ},
                                          {DCM_FloatPixelData, EVR_OF},
                                          {DCM_DoubleFloatPixelData, EVR_OD},
                                          {DCM_PixelData, EVR_ox},
                                          {DCM_SegmentSequence, EVR_SQ},
                                          {DCM_SpecificCharacterSet, EVR_CS, 'k'},
                                          {DCM_PatientName, EVR_PN, 'e'},
                                          {DCM_PatientID, EVR_LO, 'e'},
                                          {DCM_PatientBirthDate, EVR_DA, 'e'},
                                          {DCM_PatientSex, EVR_CS, 'e'},
                                          {DCM_PatientIdentityRemoved, EVR_CS, 'k'},
                                          {DCM_DeidentificationMethod, EVR_LO, 'k'},
                                          {DCM_StudyInstanceUID, EVR_UI, 'k'},
                                          {DCM_StudyID, EVR_SH, 'e'},
                                          {DCM_StudyDate, EVR_DA, 'e'},
                                          {DCM_StudyTime, EVR_TM, 'e'},
                                          {DCM_StudyDescription, EVR_LO, 'k'},
                                          {DCM_AccessionNumber, EVR_SH, 'e'},
                                          {DCM_ReferringPhysicianName, EVR_PN, 'e'},
                                          {DCM_FrameOfReferenceUID, EVR_UI, 'k'},
                                          {DCM_PositionReferenceIndicator, EVR_LO, 'e'},
                                          {DCM_LossyImageCompression, EVR_CS, 'k'},
                                          {DCM_LossyImageCompressionRatio, EVR_DS, 'k'},
                                          {DCM_LossyImageCompressionMethod, EVR_CS, 'k'},
                                          {DCM_Item, EVR_na},
                                          {DCM_ItemDelimitationItem, EVR_na},
                                          {DCM_SequenceDelimitationItem, EVR_na}};
  return all;
}

namespace {

constexpr uint32_t kUndefined = 0xffffffff, kItem = 0xfffee000, kItemEnd = 0xfffee00d,
                   kSequenceEnd = 0xfffee0dd, kPixelData = 0x7fe00010;
constexpr int kDeepest = 32;
constexpr int64_t kMostElements = 1000000;  // DCMTK takes 3 us and 300 bytes for each

bool is_sequence(uint32_t tag) {
  for (const Attribute& attribute : attributes()) {
    if (attribute.type == EVR_SQ && attribute.tag.getGroup() == tag >> 16 &&
        attribute.tag.getElement() == (tag & 0xffff))
      return true;
  }
  return false;
}

/// Goes through the elements of a data set (PS3.5, 7.1 and 7.5), without their values.
class Walker {
 public:
  Walker(const std::string& path, std::string_view bytes, bool is_explicit, bool is_big)
      : path_(path), bytes_(bytes), is_explicit_(is_explicit), is_big_(is_big) {}

  /// Returns the end of the elements that begin at `at`: `end`, or the place after an end mark.
  std::size_t elements(std::size_t at, std::size_t end, int depth) {
    if (depth > kDeepest) fail(at, fmt::format("sequences within {} sequences", kDeepest));
    while (at + 8 <= end) {
      if (++count_ > kMostElements) fail(at, fmt::format("more than {} elements", kMostElements));
      const uint32_t tag = tag_at(at);
      if (tag == kItemEnd) return at + 8;
      if (tag == kSequenceEnd && depth > 0) return at;
      bool is_items = false, is_implicit = !is_explicit_;
      uint32_t length = 0;
      if (tag >> 16 == 0xfffe || !is_explicit_) {
        length = number(at + 4, 4);
        is_items = length == kUndefined || is_sequence(tag);
        at += 8;
      } else {
        const std::string_view type = bytes_.substr(at + 4, 2);
        const bool is_long = is_one_of(type, "OB OD OF OL OV OW SQ SV UC UN UR UT UV");
        // DCMTK takes the next 4 bytes behind any other for a length, and allocates that much
        if (!is_long &&
            !is_one_of(type, "AE AS AT CS DA DS DT FD FL IS LO LT PN SH SL SS ST TM UI UL US"))
          fail(at, "an element of a type that DICOM does not have");
        if (is_long && at + 12 > end) fail(at, "an element that is cut off");
        length = is_long ? number(at + 8, 4) : number(at + 6, 2);
        is_implicit = type == "UN";  // then also little-endian (PS3.5, 6.2.2)
        is_items = type == "SQ" || length == kUndefined || (is_implicit && is_sequence(tag));
        at += is_long ? 12 : 8;
      }
      if (length != kUndefined && length > end - at)
        fail(at, fmt::format("an element of {} bytes where {} are left", length, end - at));
      const std::size_t last = length == kUndefined ? end : at + length;
      if (is_items && tag == kPixelData) {
        at = fragments(at, last);
      } else if (is_items) {
        const bool was_explicit = is_explicit_, was_big = is_big_;
        is_big_ = is_big_ && !is_implicit;
        is_explicit_ = !is_implicit;
        at = items(at, last, depth + 1);
        is_explicit_ = was_explicit;
        is_big_ = was_big;
      } else {
        at = last;
      }
    }
    return end;
  }

 private:
  std::size_t items(std::size_t at, std::size_t end, int depth) {
    while (at + 8 <= end) {
      const uint32_t tag = tag_at(at), length = number(at + 4, 4);
      at += 8;
      if (tag == kSequenceEnd) return at;
      if (++count_ > kMostElements) fail(at, fmt::format("more than {} elements", kMostElements));
      if (tag != kItem) fail(at - 8, "a sequence with something else than items");
      if (length != kUndefined && length > end - at)
        fail(at, fmt::format("an item of {} bytes where {} are left", length, end - at));
      at = elements(at, length == kUndefined ? end : at + length, depth);
    }
    return end;
  }
  std::size_t fragments(std::size_t at, std::size_t end) {
    while (at + 8 <= end) {
      const uint32_t tag = tag_at(at), length = number(at + 4, 4);
      at += 8;
      if (tag == kSequenceEnd) return at;
      if (++count_ > kMostElements) fail(at, fmt::format("more than {} elements", kMostElements));
      if (tag != kItem || length > end - at) fail(at - 8, "compressed pixels that are cut off");
      at += length;
    }
    fail(at, "compressed pixels that are cut off");
  }

  static bool is_one_of(std::string_view type, std::string_view all) {
    for (std::size_t i = 0; i + 2 <= all.size(); i += 3) {
      if (all.substr(i, 2) == type) return true;
    }
    return false;
  }
  uint32_t number(std::size_t at, std::size_t size) const {
    uint32_t value = 0;
    for (std::size_t i = 0; i < size; ++i)
      value = value << 8 | static_cast<unsigned char>(bytes_[at + (is_big_ ? i : size - 1 - i)]);
    return value;
  }
  uint32_t tag_at(std::size_t at) const { return number(at, 2) << 16 | number(at + 2, 2); }
  [[noreturn]] void fail(std::size_t at, const std::string& what) const {
    throw DataError(
        "{}: {} at byte {}, expected a complete DICOM file; it may be truncated or damaged: copy "
        "it again",
        path_,
        what,
        at);
  }

  const std::string& path_;
  std::string_view bytes_;
  bool is_explicit_, is_big_;
  int64_t count_ = 0;
};

/// Inflates the data set of the deflated transfer syntax.
std::string inflate_all(const std::string& path, std::string_view packed) {
  z_stream stream{};
  if (inflateInit2(&stream, -15) != Z_OK) throw std::bad_alloc();
  std::string all, piece(std::size_t{1} << 20, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  int state = Z_OK;
  while (state == Z_OK) {
    stream.next_out = reinterpret_cast<Bytef*>(piece.data());
    stream.avail_out = static_cast<uInt>(piece.size());
    state = inflate(&stream, Z_NO_FLUSH);
    all.append(piece, 0, piece.size() - stream.avail_out);
    if (!is_plausible(all.size(), packed.size())) state = Z_MEM_ERROR;
  }
  inflateEnd(&stream);
  if (state != Z_STREAM_END) {
    throw DataError(path +
                    ": its deflated elements can't be decompressed, expected a complete file of a "
                    "plausible size; it may be truncated or damaged: copy it again");
  }
  return all;
}

struct Codecs {
  Codecs() {
    OFLog::configure(OFLogger::OFF_LOG_LEVEL);
    dcmEnableUnknownVRConversion.set(OFTrue);  // by the dictionary, as pydicom
    DcmDataDictionary& dictionary = dcmDataDict.wrlock();
    dictionary.clear();
    for (const Attribute& attribute : attributes()) {
      dictionary.addEntry(new DcmDictEntry(attribute.tag.getGroup(),
                                           attribute.tag.getElement(),
                                           DcmVR(attribute.type),
                                           "Attribute",
                                           0,
                                           DcmVariableVM,
                                           "DICOM",
                                           OFFalse,
                                           nullptr));
    }
    dcmDataDict.wrunlock();
    DJDecoderRegistration::registerCodecs(
        EDC_photometricInterpretation, EUC_never, EPC_colorByPixel);
    DJLSDecoderRegistration::registerCodecs(EJLSUC_never, EJLSPC_colorByPixel);
  }
  ~Codecs() {
    DJDecoderRegistration::cleanup();
    DJLSDecoderRegistration::cleanup();
  }
};

DicomStart check_elements(const std::string& path, std::string_view bytes) {
  const std::size_t size = bytes.size();
  const auto fail = [&](const std::string& what, const char* expected) {
    throw DataError("{}: {}, expected {}", path, what, expected);
  };
  if (size < 144) fail(fmt::format("a file of {} bytes", size), "a complete DICOM file");
  // The elements of group 2 are explicit, little-endian, and short but for OB
  std::size_t at = bytes.substr(128, 4) == "DICM" ? 132 : 0;
  std::string syntax;
  const auto byte = [&](std::size_t i) {
    return static_cast<std::size_t>(static_cast<unsigned char>(bytes[i]));
  };
  while (at + 12 <= size && bytes[at] == 2 && bytes[at + 1] == 0) {
    const std::string_view type = bytes.substr(at + 4, 2);
    const bool is_long = type == "OB" || type == "UN" || type == "UT";
    const std::size_t length = is_long ? byte(at + 8) | byte(at + 9) << 8 | byte(at + 10) << 16 |
                                             byte(at + 11) << 24
                                       : byte(at + 6) | byte(at + 7) << 8,
                      begin = at + (is_long ? 12 : 8);
    if (length > size - begin) fail("its file meta information is cut off", "a complete file");
    if (byte(at + 2) == 0x10 && byte(at + 3) == 0) syntax = bytes.substr(begin, length);
    at = begin + length;
  }
  while (!syntax.empty() && (syntax.back() == '\0' || syntax.back() == ' ')) syntax.pop_back();
  DicomStart start;
  start.bytes = size;
  start.is_bare = at == 0;
  if (start.is_bare) {
    const DicomElements guess = begins_with_elements(bytes);
    if (guess == DicomElements::none) fail("no DICOM file", "one");
    start.syntax = guess == DicomElements::implicit_little   ? EXS_LittleEndianImplicit
                   : guess == DicomElements::explicit_little ? EXS_LittleEndianExplicit
                                                             : EXS_BigEndianExplicit;
    syntax = DcmXfer(start.syntax).getXferID();
  }
  if (syntax.empty()) fail("no transfer syntax", "one of the list in docs/data.md");
  const DcmXfer known(syntax.c_str());
  if (known.getXfer() == EXS_Unknown)
    fail("the transfer syntax '" + printable(syntax) + "'", "one of the list in docs/data.md");
  const bool is_explicit = known.isExplicitVR(), is_big = known.isBigEndian();
  if (known.getStreamCompression() == ESC_none) {
    Walker(path, bytes, is_explicit, is_big).elements(at, size, 0);
  } else {
    const std::string all = inflate_all(path, bytes.substr(at));
    Walker(path, all, is_explicit, is_big).elements(0, all.size(), 0);
  }
  return start;
}

}  // namespace

void set_up_dcmtk() {
  static const Codecs codecs;  // and the dictionary
}

std::string printable(const std::string& text) {
  std::string safe = text.substr(0, 64);
  for (char& letter : safe) {
    if (letter < ' ' || letter > '~') letter = '?';
  }
  return safe;
}

DicomStart check_structure(const std::string& path) {
  set_up_dcmtk();
  InputFile file(path);
  file.map();
  return file.read_mapped([&](const unsigned char* data) {
    return check_elements(path, {reinterpret_cast<const char*>(data), file.bytes()});
  });
}

}  // namespace cytra::io
