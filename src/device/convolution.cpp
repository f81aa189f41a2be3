#include "device/convolution.h"

#include <atomic>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace cytra::device {
namespace {

std::atomic<ConvAlgorithm> chosen{ConvAlgorithm::automatic};

struct MatrixUnits {
  MatrixUnits() {
#if defined(__x86_64__)
    unsigned a = 0, b = 0, c = 0, d = 0;
    bfloat16 = __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d >> 22 & 1) != 0;
    float16 = __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a >> 21 & 1) != 0;
#endif
  }
  bool bfloat16 = false, float16 = false;
};

}  // namespace

ConvAlgorithm conv_algorithm() {
  return chosen;
}

void set_conv_algorithm(ConvAlgorithm algorithm) {
  chosen = algorithm;
}

bool has_matrix_units(c10::ScalarType type) {
  static const MatrixUnits units;
  return type == c10::kHalf ? units.float16 : type == c10::kBFloat16 && units.bfloat16;
}

}  // namespace cytra::device
