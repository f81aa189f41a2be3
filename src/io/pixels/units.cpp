// Part of io/pixels/format.h: units of length, by their names in OME-XML, ImageJ, OME-Zarr and
// headers.
// https://www.openmicroscopy.org/Schemas/Documentation/Generated/OME-2016-06/ome_xsd.html#UnitsLength

#include <cmath>
#include <map>

#include "io/pixels/format.h"

namespace cytra::io {

double micrometres(std::string unit) {
  // The micro sign, Greek mu, and ImageJ's text for it.
  for (const char* micro : {"\xC2\xB5", "\xCE\xBC", "\xB5", "\\u00B5"}) {
    if (unit.starts_with(micro)) unit = "u" + unit.substr(std::string(micro).size());
  }
  static const std::map<std::string, double> kUnits = [] {
    constexpr double kInch = 25400;
    std::map<std::string, double> units = {{"micron", 1},
                                           {"microns", 1},
                                           {"angstrom", 1e-4},
                                           {"A", 1e-4},
                                           {"\xC3\x85", 1e-4},
                                           {"thou", kInch / 1e3},
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
    constexpr struct {
      const char *sign, *name;
      double um;
    } kPrefixes[] = {{"y", "yocto", 1e-18},
                     {"z", "zepto", 1e-15},
                     {"a", "atto", 1e-12},
                     {"f", "femto", 1e-9},
                     {"p", "pico", 1e-6},
                     {"n", "nano", 1e-3},
                     {"u", "micro", 1},
                     {"m", "milli", 1e3},
                     {"c", "centi", 1e4},
                     {"d", "deci", 1e5},
                     {"", "", 1e6},
                     {"da", "deca", 1e7},
                     {"h", "hecto", 1e8},
                     {"k", "kilo", 1e9},
                     {"M", "mega", 1e12}};
    for (const auto& prefix : kPrefixes) {
      units[std::string(prefix.sign) + "m"] = prefix.um;
      for (const char* metre : {"meter", "metre"})
        units[std::string(prefix.name) + metre] = prefix.um;
    }
    return units;
  }();
  const auto found = kUnits.find(unit);
  return found == kUnits.end() ? 0 : found->second;
}

double spacing_of(double number, double unit) {
  const double spacing = number * unit;
  return std::isfinite(spacing) && spacing > 0 ? spacing : 0;
}

}  // namespace cytra::io
