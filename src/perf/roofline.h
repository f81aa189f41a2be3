#pragma once
#include <map>
#include <string>
#include <vector>

#include <c10/core/Device.h>

namespace cytra::perf {

/// What a device can do at most, as measured. Source: Williams et al., "Roofline: an insightful
/// visual performance model for multicore architectures", 2009.
struct Roofline {
  std::map<std::string, double> flops_per_s;  // of products, by arithmetic
  double bytes_per_s = 0;                     // of a copy, read and written; 0: no memory for it
};

/// Matrix products, 3x3 convolutions of 128 channels and copies of growing size until they take
/// long enough to tell: half a second for each. arithmetic: "fp64", "fp32", "tf32", "bf16", "fp16";
/// one that torch can't multiply on the device is left out. Uses the threads that torch has.
Roofline measure_roofline(c10::Device device, const std::vector<std::string>& arithmetic);

}  // namespace cytra::perf
