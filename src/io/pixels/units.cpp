// https://www.openmicroscopy.org/Schemas/Documentation/Generated/OME-2016-06/ome_xsd.html#UnitsLength
#include "io/pixels/units.h"

#include <cmath>
#include <map>

#include "base/strings.h"
#include "io/pixels/format.h"

namespace cytra::io {

double micrometres(std::string unit) {
  // The micro sign, Greek mu, and ImageJ's text for it.
  for (const char* micro : {"\xC2\xB5", "\xCE\xBC", "\xB5", "\\u00B5"}) {
    if (starts_with(unit, micro)) unit = "u" + unit.substr(std::string(micro).size());
  }
  constexpr double kInch = 25400;
  static const std::map<std::string, double> kUnits = {{"um", 1},
                                                       {"micron", 1},
                                                       {"microns", 1},
                                                       {"micrometer", 1},
                                                       {"micrometre", 1},
                                                       {"ym", 1e-18},
                                                       {"zm", 1e-15},
                                                       {"am", 1e-12},
                                                       {"fm", 1e-9},
                                                       {"pm", 1e-6},
                                                       {"nm", 1e-3},
                                                       {"mm", 1e3},
                                                       {"cm", 1e4},
                                                       {"dm", 1e5},
                                                       {"m", 1e6},
                                                       {"dam", 1e7},
                                                       {"hm", 1e8},
                                                       {"km", 1e9},
                                                       {"yoctometer", 1e-18},
                                                       {"zeptometer", 1e-15},
                                                       {"attometer", 1e-12},
                                                       {"femtometer", 1e-9},
                                                       {"picometer", 1e-6},
                                                       {"nanometer", 1e-3},
                                                       {"nanometre", 1e-3},
                                                       {"millimeter", 1e3},
                                                       {"millimetre", 1e3},
                                                       {"centimeter", 1e4},
                                                       {"centimetre", 1e4},
                                                       {"decimeter", 1e5},
                                                       {"meter", 1e6},
                                                       {"metre", 1e6},
                                                       {"decameter", 1e7},
                                                       {"hectometer", 1e8},
                                                       {"kilometer", 1e9},
                                                       {"megameter", 1e12},
                                                       {"angstrom", 1e-4},
                                                       {"\xC3\x85", 1e-4},
                                                       {"A", 1e-4},
                                                       {"thou", kInch / 1000},
                                                       {"pt", kInch / 72},
                                                       {"li", kInch / 12},
                                                       {"in", kInch},
                                                       {"inch", kInch},
                                                       {"inches", kInch},
                                                       {"ft", kInch * 12},
                                                       {"foot", kInch * 12},
                                                       {"yd", kInch * 36},
                                                       {"yard", kInch * 36},
                                                       {"mi", kInch * 63360},
                                                       {"mile", kInch * 63360}};
  const auto found = kUnits.find(unit);
  return found == kUnits.end() ? 0 : found->second;
}

double spacing_of(double number, double unit) {
  const double spacing = number * unit;
  return std::isfinite(spacing) && spacing > 0 ? spacing : 0;
}

}  // namespace cytra::io
