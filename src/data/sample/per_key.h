#pragma once
// The common code of transforms that change each key's image by itself. A transform is a struct
// with its options and its operation:
//   struct Twiced : KeyOptions { at::Tensor operator()(const at::Tensor& image) const; };
// struct RandScaled : RandKeyOptions { auto draw(Rng& rng, const at::Tensor& first) const; };
// where draw() returns the function that every image gets. One that works by rows has `static
// constexpr bool kIsPointwise` (each voxel by itself) or `RowChange by_rows(const Scan&) const`.
#include <algorithm>
#include <string>
#include <vector>

#include <ATen/ATen.h>

#include "base/error.h"
#include "config/registry.h"
#include "data/sample/by_channel.h"
#include "data/sample/by_rows.h"
#include "data/sample/sample.h"

namespace cytra::data {

struct KeyOptions {
  std::vector<std::string> keys;
  bool allow_missing_keys = false;
  void visit(auto& v) {
    v("keys", keys, "samples' keys to transform", config::required);
    v("allow_missing_keys", allow_missing_keys, "skip a key the sample does not have");
  }
  /// Visits MONAI's option dtype, where its class has one.
  static void visit_dtype(auto& v) {
    v("dtype",
      config::Unused{{"float32", "np.float32", "numpy.float32", "torch.float32"}},
      "samples are float32");
  }
  bool skips(const Sample& sample, const std::string& key) const {
    return allow_missing_keys && !sample.has(key);
  }
  /// Applies image = change(image) to each key; a DataError gets the sample and the key in front.
  void for_each(Sample& sample, const auto& change) const {
    for (const std::string& key : keys) {
      if (skips(sample, key)) continue;
      at::Tensor& stored = sample.stored(key);
      try {
        at::Tensor made = changed_by_rows(stored, change);
        stored = made.defined() ? std::move(made) : change(sample.at(key));
      } catch (const DataError& error) {
        throw DataError(sample.id + ": '" + key + "': " + error.what());
      }
    }
  }
};

struct RandKeyOptions : KeyOptions {
  double prob = 0.1;
  void visit(auto& v) {
    KeyOptions::visit(v);
    v("prob", prob, "probability that it is done", 0, 1);
  }
};

template <class T>
class PerKey final : public Transform {
 public:
  using Options = T;
  explicit PerKey(const T& options) : options_(options) {
    if constexpr (requires { options.content(); }) text = options.content();
  }
  void apply(Sample& sample, Rng&) const override { options_.for_each(sample, options_); }
  bool takes_colours() const override {
    return requires {
      T::kTakesColours;
    };
  }
  RowChange by_rows(const std::string& key, const Scan& scan) const override {
    if (std::ranges::find(options_.keys, key) == options_.keys.end())
      return [](const at::Tensor& rows) { return rows; };
    if constexpr (IsPointwise<T>::value) return [this](const auto& rows) { return options_(rows); };
    if constexpr (HasRows<T>::value) return options_.by_rows(scan);
    return {};
  }

 private:
  T options_;
};

/// Applies a random change. The numbers are the same for all keys, drawn for the first existing
/// key; the function that draw() returns may draw more for each key.
template <class T>
class RandPerKey final : public Transform {
 public:
  using Options = T;
  explicit RandPerKey(const T& options) : options_(options) {}
  bool is_random() const override { return true; }
  void apply(Sample& sample, Rng& rng) const override {
    if (rng.uniform() >= options_.prob) return;
    for (const std::string& key : options_.keys) {
      if (options_.skips(sample, key)) continue;
      return options_.for_each(sample, options_.draw(rng, at::Tensor(sample.at(key))));
    }
  }

 private:
  T options_;
};

/// Changes a whole sample: a struct with its options, perhaps num_samples and kIsBounded, and
/// `void operator()(Sample& sample) const`; a second argument, an Rng, makes it random.
template <class T>
class PerSample final : public Transform {
 public:
  using Options = T;
  explicit PerSample(const T& options) : options_(options) {}
  bool is_random() const override { return !std::is_invocable_v<const T&, Sample&>; }
  bool is_bounded() const override { return kIsBounded<T>; }
  int64_t num_samples() const override {
    if constexpr (requires { options_.num_samples; }) return options_.num_samples;
    return Transform::num_samples();
  }
  void apply(Sample& sample, Rng& rng) const override {
    if constexpr (std::is_invocable_v<const T&, Sample&>)
      options_(sample);
    else
      options_(sample, rng);
  }

 private:
  T options_;
};

/// A range that an option gives by two numbers, or by one and `other`.
struct Range {
  double low, high;
  Range(const std::vector<double>& numbers, double other)
      : low(std::min(numbers[0], numbers.size() > 1 ? numbers[1] : other)),
        high(std::max(numbers[0], numbers.size() > 1 ? numbers[1] : other)) {}
  double draw(Rng& rng) const { return rng.uniform(low, high); }
  std::vector<double> draw(Rng& rng, int64_t count) const {
    std::vector<double> numbers;
    while (std::ssize(numbers) < count) numbers.push_back(draw(rng));
    return numbers;
  }
};

inline void check_range(const char* name, const std::vector<double>& numbers, bool one_is_enough) {
  if (numbers.size() == 2 || (one_is_enough && numbers.size() == 1)) return;
  throw ConfigError(std::string(name) + ": " + std::to_string(numbers.size()) +
                    " numbers, expected " + (one_is_enough ? "one or two" : "two: low, high"));
}

}  // namespace cytra::data
