#pragma once
// Photographs of a retina with known truth: a lit disc on black with vessels, optic disc and
// macula, cut off by the image or by bars, dark, noisy, squeezed.
#include <cstdint>
#include <string>

#include "io/image.h"

namespace cytra::samples {

struct FundusOptions {
  int64_t height = 384, width = 512;
  double radius = 0.44;    // mean, of the disc: share of the smaller side
  double shift = 0.04;     // of its centre from the image's, at most: share of the smaller side
  double exposure = 0.7;   // red of the retina, 0..1
  double noise = 0.02;     // deviation of each pixel, 0..1
  double uneven = 0.4;     // how much of the light is lost towards the rim, at most
  double axes_ratio = 1;   // minor : major; below 1 a disc that was squeezed
  double bars = 0;         // of black at the top and bottom: each, of the diameter
  bool has_label = false;  // bright letters in a corner
};

struct FundusSample {
  io::Image image;    // u8, (3,1,Y,X): red, green, blue
  io::Image vessels;  // u8, (1,1,Y,X): 0 or 1
  // The disc, in pixels: centre, semi axes, radians of the major axis from x towards y.
  double y = 0, x = 0, major = 0, minor = 0, angle = 0;
};

/// Makes a photograph; the result depends on the arguments alone. Throws: ConfigError for options
/// out of range.
FundusSample generate_fundus(const FundusOptions& options, uint64_t seed, uint64_t index);
/// Image `index` of a set in which sizes, exposure, noise, light, bars, labels and the axes' ratio
/// vary.
FundusOptions varied_fundus(uint64_t seed, uint64_t index);

/// Writes images/, train.csv, valid.csv, test.csv (columns raw, seg: the vessels; and the disc's y,
/// x, major, minor, angle) under `folder`: of varied_fundus(). Throws: as AtomicFile.
void write_fundus_dataset(
    const std::string& folder, int64_t train, int64_t valid, int64_t test, uint64_t seed);

}  // namespace cytra::samples
