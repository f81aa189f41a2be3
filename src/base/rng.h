#pragma once
// Random numbers by counter: a stream depends on its key only, so a sample is the same for any
// number and order of workers, and after a resume.
#include <cstdint>

namespace cytra {

class Rng {
 public:
  /// A stream for the key (seed, epoch, sample).
  explicit Rng(uint64_t seed, uint64_t epoch = 0, uint64_t sample = 0);
  uint64_t next();
  /// Uniform in [0, 1).
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  /// Uniform in [0, n), without bias. n >= 1.
  uint64_t below(uint64_t n);
  /// A normal number of mean 0 and standard deviation 1 (Box-Muller).
  double normal();
  /// A Poisson number of this mean >= 0 (Knuth below 30, rounded normal above).
  double poisson(double mean);
  /// The next n draws, to be computed elsewhere: draw i of them, counted from 0, is
  /// mix(key ^ mix(counter + 1 + i)), with splitmix64's finaliser.
  struct Span {
    uint64_t key, counter;
  };
  Span take(uint64_t n) {
    const Span span{key_, counter_};
    counter_ += n;
    return span;
  }

 private:
  uint64_t key_, counter_ = 0;
};

}  // namespace cytra
