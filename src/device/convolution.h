#pragma once

namespace cytra::device {

/// How convolutions are computed on a CPU: where it is expected to be faster by Winograd's
/// algorithm, never by it, or wherever it can be (ops/conv/winograd/winograd.h).
enum class ConvAlgorithm { automatic, direct, winograd };

/// The algorithm of this process: performance.convolution. May be set at any time.
ConvAlgorithm conv_algorithm();
void set_conv_algorithm(ConvAlgorithm algorithm);

}  // namespace cytra::device
