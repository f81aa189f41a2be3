#pragma once
// Loads the formats with large dependencies, which are in small libraries of their own beside this
// one, at the first file of such a format. For image_folder.cpp and the modules.
#include <memory>
#include <string>
#include <string_view>

#include "io/reader.h"
#include "io/writer.h"

namespace cytra::io {

// Format::probe and Format::open. Without the module they throw DataError, which names the package
// to install.
bool is_dicom(const std::string& head, const std::string& path);
std::unique_ptr<ImageReader> open_dicom(const std::string& path, const Selection& selection);

/// Whether a DICOM file without a preamble begins with elements, and how they are encoded.
enum class DicomElements { none, implicit_little, explicit_little, explicit_big };
DicomElements begins_with_elements(std::string_view bytes);

/// The function that each libcytra_NAME.so exports as kModuleEntry; the caller owns the reader.
using ModuleEntry = ImageReader* (*)(const std::string& path, const Selection& selection);
constexpr char kModuleEntry[] = "cytra_open_image";
/// The function that libcytra_dicom.so exports as cytra_create_image, likewise.
using CreateImageEntry = ImageWriter* (*)(const std::string& path,
                                          const ImageInfo& info,
                                          const OutputOptions& options);

}  // namespace cytra::io
