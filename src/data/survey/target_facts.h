#pragma once
// Facts about a target, whatever it is used for.
#include <cstdint>
#include <map>
#include <string>

#include <ATen/core/Tensor.h>

namespace cytra::data {

/// Facts about a target as the task gets it, before it makes labels of it.
struct TargetFacts {
  int64_t channels = 1;
  double min = 0, max = 0;
  bool is_whole = true;              // every value is a whole number
  std::map<double, int64_t> counts;  // voxels by value; empty: more than 4096 values
  double at_ends = 1;                // share of voxels within an eighth of the range from its ends
  double alike = 1;       // share of the voxels between the ends that equal a neighbour along X
  int64_t regions = 0;    // connected voxels of one value other than 0
  bool is_image = false;  // the values of the image, up to scale and offset
  std::string file = {};  // for messages
  std::map<std::string, int64_t> colours;  // "#ff0000": voxels; of 3 or 4 channels with few colours
};

constexpr std::size_t kFewTargetValues = 16;  // the most values of labels that are all classes

/// Reduces a mask that was saved as a picture: grey in 3 channels becomes channel 0, and a
/// constant alpha channel is removed. Other images are not changed. Shape: (C,[D,]H,W).
at::Tensor without_equal_channels(const at::Tensor& image);

/// Makes one channel of a target with a colour for each object: R * 65536 + G * 256 + B, for 3 or 4
/// channels of whole numbers up to 255; without_equal_channels() of others.
at::Tensor as_numbers(const at::Tensor& target);

/// Collects facts about a target. Shape: target (C,[D,]H,W), image (C,[D,]H,W) of any size, both
/// of any real type. `is_label`: regions are counted. Large images are converted to float32 some
/// rows at a time.
TargetFacts look_at_target(const at::Tensor& target, const at::Tensor& image, bool is_label);

}  // namespace cytra::data
