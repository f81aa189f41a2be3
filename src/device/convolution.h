#pragma once
#include <c10/core/ScalarType.h>

namespace cytra::device {

/// How convolutions are computed on a CPU: where it is expected to be faster by Winograd's
/// algorithm, never by it, or wherever it can be (ops/conv/winograd/winograd.h).
enum class ConvAlgorithm { automatic, direct, winograd };

/// The algorithm of this process: performance.convolution. May be set at any time.
ConvAlgorithm conv_algorithm();
void set_conv_algorithm(ConvAlgorithm algorithm);

/// Whether the CPU has units that multiply matrices of this type: AMX-BF16, AMX-FP16.
bool has_matrix_units(c10::ScalarType type);

}  // namespace cytra::device
