#pragma once

namespace cytra::ops {

/// From now on the calling thread computes by itself: torch's loops, oneDNN's and MKL's take no
/// team of threads. In a parallel region: until that ends.
void compute_alone();

}  // namespace cytra::ops
