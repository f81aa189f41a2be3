#pragma once
// Synthetic fluorescence microscopy with known truth: nuclei of irregular shape, out-of-focus blur,
// uneven light, photon and camera noise; and a second stain that depends on the nuclei, to learn
// one from the other.
#include <cstdint>
#include <string>

#include "io/image.h"

namespace cytra::samples {

struct NucleiOptions {
  int64_t spatial_dims = 2;        // 2 or 3
  int64_t size = 256, depth = 24;  // pixels in y and x; planes when 3D, each as thick as 4 pixels
  int64_t count = 0;               // nuclei, as far as they find room; 0: by density
  double radius = 9;               // pixels, mean
  double photons = 120;            // expected photons of a bright nucleus' pixel: lower is noisier
  double psf_sigma = 1.2;          // pixels in y and x; twice as far in z
  double background = 0.08;        // share of a nucleus' brightness
  double uneven = 0.35;            // strength of the uneven illumination, 0..1
};

struct NucleiSample {
  io::Image image;      // u16, (1,Z,Y,X), 0.25 um pixels, 1 um planes
  io::Image instances;  // u16, 0 background, 1..n
  io::Image semantic;   // u8, 0 or 1
  io::Image stain;      // u16: the second stain (cytoplasm), without noise
};

/// Makes an image; the result depends on the arguments alone. Throws: ConfigError for options out
/// of range.
NucleiSample generate_nuclei(const NucleiOptions& options, uint64_t seed, uint64_t index);

/// Writes images/ and train.csv, valid.csv, test.csv (columns raw, seg, instances, stain; paths
/// relative to the CSV) under `folder`. Throws: as generate_nuclei and AtomicFile.
void write_dataset(const std::string& folder,
                   const NucleiOptions& options,
                   int64_t train,
                   int64_t valid,
                   int64_t test,
                   uint64_t seed);

}  // namespace cytra::samples
