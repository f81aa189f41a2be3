#pragma once
// The common options of the spatial transforms: keys, MONAI's "one for all or one per key" and
// "one for all or one per dimension".
#include <string>
#include <vector>

#include <fmt/ranges.h>

#include "base/strings.h"
#include "data/sample/per_key.h"

namespace cytra::data::spatial {

struct KeyOptions : data::KeyOptions {
  void visit(auto& v) {
    data::KeyOptions::visit(v);
    v("lazy", config::Unused{{"false", "null"}}, "each transform resamples by itself");
  }
  /// The size of the first existing key, (Y,X) or (Z,Y,X); empty where there is none.
  std::vector<int64_t> first_size(Sample& sample) const {
    for (const std::string& key : keys) {
      if (!skips(sample, key)) return sample.size(key);
    }
    return {};
  }
  /// Applies image = change(image, position of the key, its geometry) to each key; a DataError
  /// gets the sample's name and the key in front.
  void for_each(Sample& sample, const auto& change) const { each(sample, &Sample::at, change); }
  /// Applies a change that only moves voxels, in the type on file.
  void move_each(Sample& sample, const auto& change) const {
    each(sample, &Sample::stored, change);
  }

 private:
  void each(Sample& sample,
            at::Tensor& (Sample::*get)(const std::string&),
            const auto& change) const {
    for (std::size_t k = 0; k < keys.size(); ++k) {
      if (skips(sample, keys[k])) continue;
      at::Tensor& image = (sample.*get)(keys[k]);
      try {
        image = change(image, k, sample.geometries[keys[k]]);
      } catch (const DataError& error) {
        throw DataError("{}: '{}': {}", sample.id, keys[k], error.what());
      }
    }
  }
};

/// An option that holds one value for all keys, or one per key.
template <class T>
T of_key(const std::vector<T>& values, std::size_t key) {
  return values[values.size() == 1 ? 0 : key];
}

template <class T>
void check_per_key(const char* place, const std::vector<T>& values, const KeyOptions& options) {
  if (values.size() == 1 || values.size() == options.keys.size()) return;
  throw ConfigError("{}: {} values for {} keys, expected one for all or one per key",
                    place,
                    values.size(),
                    options.keys.size());
}

inline void check_choices(const char* place,
                          const std::vector<std::string>& values,
                          const std::vector<std::string>& choices) {
  for (const std::string& value : values) {
    if (!contains(choices, value))
      throw ConfigError("{}: '{}' is not supported.{}", place, value, suggestion(value, choices));
  }
}

/// Checks an option that is one of `choices` for all keys, or for each key.
inline void check_modes(const char* place,
                        const std::vector<std::string>& values,
                        const std::vector<std::string>& choices,
                        const KeyOptions& options) {
  check_choices(place, values, choices);
  check_per_key(place, values, options);
}

/// Makes one number per spatial dimension from one, or from as many.
template <class T>
std::vector<T> per_dim(const char* place, std::vector<T> values, std::size_t dims) {
  if (values.size() == 1) values.resize(dims, values[0]);
  if (values.size() != dims) {
    throw ConfigError("{}: {} numbers, expected one or {} for an image of {} spatial dimensions",
                      place,
                      values.size(),
                      dims,
                      dims);
  }
  return values;
}

/// The size by MONAI's fall_back_tuple: numbers <= 0, and an empty list, mean the image's own
/// size.
inline std::vector<int64_t> size_or(const char* place,
                                    const std::vector<int64_t>& given,
                                    at::IntArrayRef image) {
  if (given.empty()) return image.vec();
  std::vector<int64_t> size = per_dim(place, given, image.size());
  for (std::size_t d = 0; d < size.size(); ++d) {
    if (size[d] <= 0) size[d] = image[d];
  }
  return size;
}

/// The image's size, increased to multiples of k; k <= 0: unchanged.
inline std::vector<int64_t> divisible_size(const char* place,
                                           at::IntArrayRef image,
                                           const std::vector<int64_t>& k) {
  const std::vector<int64_t> divisors = per_dim(place, k, image.size());
  std::vector<int64_t> size = image.vec();
  for (std::size_t d = 0; d < size.size(); ++d) {
    if (divisors[d] > 0) size[d] = (size[d] + divisors[d] - 1) / divisors[d] * divisors[d];
  }
  return size;
}

/// The dimensions of a (C,[Z,]Y,X) tensor: 0 is the first after C, -1 the last.
inline std::vector<int64_t> tensor_dims(const char* place,
                                        const std::vector<int64_t>& axes,
                                        int64_t dims) {
  std::vector<int64_t> result;
  for (const int64_t axis : axes) {
    if (axis < -dims || axis >= dims) {
      throw ConfigError("{}: no axis {} in an image of {} spatial dimensions", place, axis, dims);
    }
    result.push_back(axis < 0 ? axis + dims + 1 : axis + 1);
  }
  return result;
}

}  // namespace cytra::data::spatial
