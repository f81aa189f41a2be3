#pragma once
#include <string>

#include "io/image.h"

namespace cytra::inference {

/// The file of a result, `info`, of the image `source`: `stem` with the ending of `format`, one of
/// predict.format; auto: that of the image where it holds the result, else OME-TIFF. Throws:
/// DataError when the format can't hold it.
std::string output_path(const std::string& stem,
                        const std::string& source,
                        const io::ImageInfo& info,
                        const std::string& format);

}  // namespace cytra::inference
