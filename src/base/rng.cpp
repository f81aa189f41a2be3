#include "base/rng.h"

#include <cmath>

namespace cytra {
namespace {

// The finaliser of splitmix64 (Steele, Lea, Flood 2014): every bit of the input affects every bit
// of the output.
uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace

Rng::Rng(uint64_t seed, uint64_t epoch, uint64_t sample)
    : key_(mix(mix(mix(seed) ^ epoch) ^ sample)) {}

uint64_t Rng::next() {
  return mix(key_ ^ mix(++counter_));
}

uint64_t Rng::below(uint64_t n) {
  const uint64_t limit = UINT64_MAX - UINT64_MAX % n;
  for (;;) {
    const uint64_t draw = next();
    if (draw < limit) return draw % n;
  }
}

double Rng::normal() {
  const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
  return radius * std::cos(6.283185307179586 * uniform());
}

double Rng::poisson(double mean) {
  if (mean >= 30) return std::fmax(0.0, std::round(mean + std::sqrt(mean) * normal()));
  const double limit = std::exp(-mean);
  double product = uniform();
  double count = 0;
  for (; product > limit; ++count) product *= uniform();
  return count;
}

}  // namespace cytra
