#include "device/convolution.h"

#include <atomic>

namespace cytra::device {
namespace {

std::atomic<ConvAlgorithm> chosen{ConvAlgorithm::automatic};

}  // namespace

ConvAlgorithm conv_algorithm() {
  return chosen;
}

void set_conv_algorithm(ConvAlgorithm algorithm) {
  chosen = algorithm;
}

}  // namespace cytra::device
