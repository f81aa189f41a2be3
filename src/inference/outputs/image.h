#pragma once
#include <string>

#include "io/image.h"
#include "io/reader.h"

namespace cytra::inference {

/// The path of the result `info` of the image `source`: `stem` with the ending of `format`, one of
/// predict.format; auto: the format of the image where it can hold the result, else OME-TIFF.
/// Throws: DataError when the format can't hold it.
std::string output_path(const std::string& stem,
                        const std::string& source,
                        const io::ImageInfo& info,
                        const std::string& format);

}  // namespace cytra::inference
