#pragma once
// nnU-Net's rules for a U-Net that suits a data set. Source: Isensee et al. 2021 (Nature Methods
// 18); nnunetv2.experiment_planning: default_experiment_planner, network_topology.
#include <cstdint>
#include <vector>

namespace cytra::nn {

/// The input of the rules. Vectors have an entry per spatial dimension, the slowest first.
struct DataFacts {
  std::vector<std::vector<double>> spacings;  // of each image, in any one unit
  std::vector<std::vector<int64_t>> shapes;
  int64_t outputs = 2;  // channels of the logits
};

/// The median spacing; along an axis that is far coarser than the others, and has far fewer voxels,
/// the 10th percentile: interpolating the finer images there would do harm.
std::vector<double> target_spacing(const DataFacts& data);
/// The median of the images' sizes at `spacing`.
std::vector<double> median_shape(const DataFacts& data, const std::vector<double>& spacing);

using Sizes = std::vector<int64_t>;
struct Topology {
  std::vector<Sizes> strides, kernels;  // per level
  Sizes patch, divisor;                 // the patch rounded up to what the strides divide
};
/// An axis is halved while it stays at least 4 voxels long and its spacing is within twice the
/// finest; kernels are 1 along an axis until then.
Topology topology_of(const std::vector<double>& spacing, const std::vector<double>& patch);

struct UNetPlan {
  Topology topology;
  Sizes first_patch;  // before it was made to fit
  Sizes features;     // per level
  int64_t batch_size = 2;
  double values = 0;  // of the feature maps of one patch
};
/// The patch has the aspect of the median image and is as large as `memory_gb` allows for two of
/// them, or the whole image and more of them, up to 5 % of all voxels in a batch. `memory_gb` is
/// for 16 bit mixed precision. Throws: ConfigError when not even the smallest patch fits.
UNetPlan plan_unet(const DataFacts& data,
                   const std::vector<double>& spacing,
                   const std::vector<double>& median,
                   double memory_gb);

}  // namespace cytra::nn
