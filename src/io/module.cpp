#include "io/module.h"

#include <filesystem>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/shared_library.h"
#include "base/strings.h"
#include "io/input_file.h"
#include "io/pixels/format.h"
#include "io/video_stream.h"

namespace cytra::io {
namespace {

namespace fs = std::filesystem;

struct Module {
  const char *name, *what, *format, *package;
};

[[noreturn]] void fail_module(const std::string& path,
                              const Module& module,
                              const std::string& why) {
  throw DataError("{}: {}, but {}", path, module.what, why);
}

template <class Entry = ModuleEntry>
Entry load(const std::string& path, const Module& module, const char* name = kModuleEntry) {
  const std::string file = path_beside(&is_dicom, fmt::format("libcytra_{}.so", module.name));
  if (!path_exists(file)) {
    fail_module(path,
                module,
                fmt::format("this installation has no {0}; the .deb has it, or run in the folder "
                            "of Cytra's source: CYTRA_FORMATS={1} scripts/build.sh (it installs "
                            "{2})",
                            module.format,
                            module.name,
                            module.package));
  }
  SharedLibrary library(file, SharedLibrary::Symbols::local);
  if (!library.is_loaded())
    fail_module(path, module, fmt::format("its module can't be loaded: {}", library.problem()));
  const auto entry = library.find<Entry>(name);
  if (entry == nullptr)
    fail_module(path,
                module,
                fmt::format("its module does not belong to this build: {}", library.problem()));
  return entry;
}

constexpr Module kDicom{"dicom", "a DICOM file", "DICOM", "libdcmtk-dev"};
constexpr Module kFFmpeg{"ffmpeg",
                         "a video",
                         "FFmpeg, which is under the GPL",
                         "libavformat-dev libavcodec-dev libswscale-dev libavutil-dev"};

}  // namespace

DicomElements begins_with_elements(std::string_view bytes) {
  const auto number = [&](std::size_t at, std::size_t size, bool is_big) {
    uint32_t value = 0;
    for (std::size_t i = 0; i < size; ++i)
      value = value << 8 | static_cast<unsigned char>(bytes[at + (is_big ? i : size - 1 - i)]);
    return value;
  };
  const auto is_letter = [&](std::size_t at) { return bytes[at] >= 'A' && bytes[at] <= 'Z'; };
  if (bytes.size() < 32) return DicomElements::none;
  const bool is_big = bytes[0] == 0, is_explicit = is_letter(4) && is_letter(5);
  const uint32_t first = number(0, 2, is_big);
  if ((first != 2 && first != 8) || (is_big && (first == 2 || !is_explicit)))
    return DicomElements::none;
  // Three elements in order are enough, each of a size that a file's first ones have.
  uint32_t last = 0;
  std::size_t at = 0;
  for (int count = 0; count < 3; ++count) {
    if (at + 12 > bytes.size()) return DicomElements::none;
    const uint32_t tag = number(at, 2, is_big) << 16 | number(at + 2, 2, is_big);
    const std::string_view type = bytes.substr(at + 4, 2);
    const bool is_long = type == "OB" || type == "UN" || type == "UT" || type == "SQ";
    if (tag >> 16 > 0x10 || (count > 0 && tag <= last) ||
        (is_explicit && (!is_letter(at + 4) || !is_letter(at + 5))))
      return DicomElements::none;
    const uint32_t length = !is_explicit ? number(at + 4, 4, is_big)
                            : is_long    ? number(at + 8, 4, is_big)
                                         : number(at + 6, 2, is_big);
    if (length > 256) return DicomElements::none;
    at += (is_explicit && is_long ? 12 : 8) + length;
    last = tag;
  }
  return is_big        ? DicomElements::explicit_big
         : is_explicit ? DicomElements::explicit_little
                       : DicomElements::implicit_little;
}

bool is_dicom(const std::string& head, const std::string& path) {
  const auto has_magic = [](const std::string& bytes, const std::string& name) {
    // Slides may be TIFF at the same time; other files have only a TIFF's first bytes.
    const bool is_tiff_too =
        is_tiff(bytes, name) && (name.ends_with(".tif") || name.ends_with(".tiff"));
    const bool is_plain = bytes.size() > 132 && bytes.compare(128, 4, "DICM") == 0;
    return (is_plain && !is_tiff_too) || begins_with_elements(bytes) != DicomElements::none;
  };
  if (!head.empty()) return has_magic(head, path);
  // In a folder the first files decide; there may be a text beside them.
  std::error_code error;
  if (!fs::is_directory(path, error)) return false;
  int looked = 0;
  for (auto entry = fs::directory_iterator(path, error);
       !error && entry != fs::directory_iterator() && looked < 4;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    std::error_code ignored;
    if (name[0] == '.' || !entry->is_regular_file(ignored)) continue;
    ++looked;
    try {
      if (has_magic(InputFile(entry->path().string()).begin(kHeadBytes), name)) return true;
    } catch (const ConfigError&) {  // not readable
    } catch (const DataError&) {    // no file
    }
  }
  return false;
}

std::unique_ptr<ImageReader> open_dicom(const std::string& path, const Selection& selection) {
  static const auto open = load(path, kDicom);
  return std::unique_ptr<ImageReader>(open(path, selection));
}

namespace {

bool is_video(const std::string& head, const std::string&) {
  if (head.size() < 12) return false;
  const bool is_mp4 = head.compare(4, 4, "ftyp") == 0 || head.compare(4, 4, "moov") == 0 ||
                      head.compare(4, 4, "mdat") == 0 || head.compare(4, 4, "wide") == 0;
  return (is_mp4 || (head.compare(0, 4, "RIFF") == 0 && head.compare(8, 4, "AVI ") == 0) ||
          head.compare(0, 4, "\x1a\x45\xdf\xa3") == 0);  // Matroska, WebM
}

std::unique_ptr<ImageReader> open_video(const std::string& path, const Selection& selection) {
  static const auto open = load(path, kFFmpeg);
  return std::unique_ptr<ImageReader>(open(path, selection));
}

bool is_hdf5(const std::string& head, const std::string& path) {
  constexpr std::string_view kMagic = "\x89HDF\r\n\x1a\n";
  // The magic may follow a user block of 512 bytes (MATLAB's), or of that times a power of two.
  if (head.compare(0, 8, kMagic) == 0 || (head.size() >= 520 && head.compare(512, 8, kMagic) == 0))
    return true;
  const std::string file = file_of(path);
  if (head.size() < kHeadBytes || (!file.ends_with(".h5") && !file.ends_with(".hdf5")))
    return false;
  const InputFile input(file);
  for (uint64_t at = 1024; at + 8 <= input.bytes(); at *= 2) {
    char bytes[8];
    if (input.read_at(at, bytes, 8) == 8 && std::string_view(bytes, 8) == kMagic) return true;
  }
  return false;
}

std::unique_ptr<ImageReader> open_hdf5(const std::string& path, const Selection& selection) {
  static const auto open = load(path, {"hdf5", "an HDF5 file", "HDF5", "libhdf5-dev"});
  return std::unique_ptr<ImageReader>(open(path, selection));
}

/// Format::expect_source of DICOM.
void expect_dicom(const std::string& source) {
  std::error_code error;
  const bool is_folder = fs::is_directory(source, error);
  if (is_folder || fs::exists(source, error)) {
    if (is_dicom(is_folder ? "" : InputFile(source).begin(kHeadBytes), source)) return;
  }
  throw DataError(
      "{}: no DICOM, and DICOM is written of results of a DICOM series alone, expected {}",
      source,
      output_names([](const Format& format) { return format.expect_source == nullptr; }));
}

std::unique_ptr<ImageWriter> create_dicom(const std::string& path,
                                          const ImageInfo& info,
                                          const OutputOptions& options) {
  expect_dicom(options.source.empty() ? path : options.source);
  static const auto create = load<CreateImageEntry>(path, kDicom, "cytra_create_image");
  return std::unique_ptr<ImageWriter>(create(path, info, options));
}

const bool dicom_is_known = add_format("dicom", [](Format& dicom) {
  dicom.title = "DICOM";
  dicom.rank = 0;
  dicom.endings = {".dcm"};
  dicom.media_type = "application/dicom";
  dicom.probe = is_dicom;
  dicom.open = open_dicom;
  dicom.create = create_dicom;
  dicom.written_endings = {".dcm"};
  dicom.output_ending = ".seg.dcm";
  dicom.written_as = "ome_tiff";
  dicom.expect_source = expect_dicom;
  dicom.fits = [](const ImageInfo& info) { return info.dtype != Dtype::f32; };
  dicom.holds = "masks and labels";
  dicom.position = Format::Position::direction;
  dicom.names_own_axes = true;
  dicom.chooses_scene = true;
});
const bool hdf5_is_known = add_format("hdf5", [](Format& hdf5) {
  hdf5.title = "HDF5";
  hdf5.rank = 95;
  hdf5.endings = {".h5", ".hdf5", ".mat"};
  hdf5.are_archives = true;
  hdf5.probe = is_hdf5;
  hdf5.open = open_hdf5;
});
const bool video_is_known = add_format("video", [](Format& video) {
  video.title = "video";
  video.rank = 99;
  video.endings = {".mp4", ".mov", ".avi", ".mkv", ".webm"};
  video.probe = is_video;
  video.open = open_video;
  video.names_own_axes = true;
});

}  // namespace

std::unique_ptr<VideoSource> open_video_source(const std::string& path,
                                               std::function<bool()> stop) {
  static const auto open = load<OpenVideoEntry>(path, kFFmpeg, kOpenVideoEntry);
  return std::unique_ptr<VideoSource>(open(path, std::move(stop)));
}

std::unique_ptr<VideoSink> create_video(const std::string& path,
                                        const VideoSource& like,
                                        const VideoSinkOptions& options) {
  static const auto create = load<CreateVideoEntry>(path, kFFmpeg, kCreateVideoEntry);
  return std::unique_ptr<VideoSink>(create(path, like, options));
}

}  // namespace cytra::io
