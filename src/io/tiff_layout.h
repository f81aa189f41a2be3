#pragma once
// Which page of a TIFF holds which channel and plane, from its first description.
#include <string>
#include <vector>

#include "io/image.h"

namespace cytra::io {

struct TiffPages {
  int64_t count = 0, width = 0, height = 0;
  int64_t samples = 1;                    // per pixel; further channels within a page
  double x_per_unit = 0, y_per_unit = 0;  // resolution tags; 0: none
};

struct TiffLayout {
  int64_t channels = 1, planes = 1;  // channels without the samples within a page
  std::vector<std::size_t> pages;    // of (channel, plane)
  Geometry geometry;
  std::vector<std::string> channel_names;
};

/// Understands OME-XML, ImageJ and tifffile's JSON; else pages are planes.
/// Throws: DataError for several time points or what contradicts the pages.
TiffLayout tiff_layout(const std::string& path,
                       const std::string& description,
                       const TiffPages& pages);

}  // namespace cytra::io
