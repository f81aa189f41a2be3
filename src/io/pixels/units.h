#pragma once
// Units of length, by the names that OME-XML and ImageJ give them.
#include <string>

namespace cytra::io {

/// Micrometres per unit; 0 for a unit we don't know ("pixel").
double micrometres(std::string unit);
double spacing_of(double number, double unit);  // 0 unless it is a length

}  // namespace cytra::io
