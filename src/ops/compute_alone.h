#pragma once

namespace cytra::ops {

/// Makes the calling thread compute by itself from now on: torch's loops, oneDNN's and MKL's start
/// no team of threads. Inside a parallel region this holds until the region ends.
void compute_alone();

}  // namespace cytra::ops
