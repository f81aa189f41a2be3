#pragma once
// Outlines for ImageJ and Fiji. Source: ij.io.RoiDecoder and RoiEncoder of ImageJ 1.54.
#include <string>
#include <vector>

#include "io/objects/polygons.h"

namespace cytra::io {

/// Writes a zip archive for the ROI Manager, with a ROI for each label of a plane, by its name
/// ("LABEL.roi", of a stack "PLANE-LABEL.roi" from plane 1): a traced polygon, or a composite for
/// objects with holes or of several parts. Corners on the pixel grid. `channels`: of the image
/// that the ROIs are for, which says how ImageJ counts the planes of a stack. Atomic.
/// Throws: as AtomicFile; DataError for an image of more than 60 000 pixels a side.
void write_imagej_rois(const std::string& path,
                       const std::vector<Polygon>& polygons,
                       bool is_stack = false,
                       int64_t channels = 1);

}  // namespace cytra::io
