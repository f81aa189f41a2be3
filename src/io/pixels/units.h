#pragma once
// Units of length, by their names in OME-XML, ImageJ, OME-Zarr and headers.
#include <string>

namespace cytra::io {

/// The micrometres per unit; 0 for a unit we don't know ("pixel").
double micrometres(std::string unit);
double spacing_of(double number, double unit);  // 0 unless it is a length

}  // namespace cytra::io
