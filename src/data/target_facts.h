#pragma once
// What a target holds, whatever it is for.
#include <cstdint>
#include <map>
#include <string>

#include <ATen/core/Tensor.h>

namespace cytra::data {

/// A target as the task gets it, before it makes labels of it.
struct TargetFacts {
  int64_t channels = 1;
  double min = 0, max = 0;
  bool is_whole = true;              // every value is a whole number
  std::map<double, int64_t> counts;  // voxels by value; empty: more than 4096 values
  double at_ends = 1;                // share of voxels within an eighth of the range from its ends
  double alike = 1;       // share of the voxels between the ends that equal a neighbour along X
  int64_t regions = 0;    // connected voxels of one value other than 0
  bool is_image = false;  // the values of the image, up to scale and offset
  std::map<std::string, int64_t> colours;  // "#ff0000": voxels; of 3 or 4 channels with few colours
};

constexpr std::size_t kFewTargetValues = 16;  // labels have as many at most, where all are classes

/// Channel 0 of grey in 3 channels, and without an alpha channel that is constant: a mask that was
/// saved as a picture. Other images stay. Shape: (C,[D,]H,W).
at::Tensor without_equal_channels(const at::Tensor& image);

/// Shape: target (C,[D,]H,W), image (C,[D,]H,W) of any size, both of any real type. `is_label`:
/// regions are counted. Of large images some rows at a time are float32.
TargetFacts look_at_target(const at::Tensor& target, const at::Tensor& image, bool is_label);

}  // namespace cytra::data
