#pragma once
// Formats whose libraries are heavy live in small libraries of their own beside this one, loaded at
// the first file of such a format. For image_folder.cpp and the modules.
#include <memory>
#include <string>
#include <string_view>

#include "io/reader.h"

namespace cytra::io {

// As Format::probe and Format::open. Without the module: DataError that names the package to
// install.
bool is_dicom(const std::string& head, const std::string& path);
std::unique_ptr<ImageReader> open_dicom(const std::string& path, const Selection& selection);

/// Of a DICOM file without a preamble: whether it begins with elements, and how they are written.
enum class DicomElements { none, implicit_little, explicit_little, explicit_big };
DicomElements begins_with_elements(std::string_view bytes);

/// What each libcytra_NAME.so exports as kModuleEntry; gives away the reader.
using ModuleEntry = ImageReader* (*)(const std::string& path, const Selection& selection);
constexpr char kModuleEntry[] = "cytra_open_image";

}  // namespace cytra::io
