#include "ops/labels/components.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "base/error.h"
#include "ops/labels/volume.h"

namespace cytra::ops {
namespace {

/// Voxels of one value side by side in a row: [begin, end).
template <class T>
struct Run {
  int32_t begin, end;
  T value;
};

template <class T>
struct Runs {
  std::vector<Run<T>> all;
  std::vector<std::size_t> first;  // of each row; one more at the end
};

/// The place of the first value from `x` on that differs; `width` when there is none. Bytes are
/// compared eight at a time.
template <class T>
int32_t end_of_run(const T* data, int32_t x, int32_t width) {
  const T value = data[x];
  if constexpr (sizeof(T) == 1) {
    const uint64_t eight = 0x0101010101010101U * value;
    for (uint64_t word = 0; x + 8 <= width; x += 8) {
      std::memcpy(&word, data + x, sizeof word);
      if (word != eight) break;
    }
  }
  while (x < width && data[x] == value) ++x;
  return x;
}

template <class T>
Runs<T> runs_of(const at::Tensor& volume) {
  const T* data = volume.const_data_ptr<T>();
  const int64_t rows = volume.size(0) * volume.size(1);
  const auto width = static_cast<int32_t>(volume.size(2));
  Runs<T> runs;
  runs.first.reserve(static_cast<std::size_t>(rows) + 1);
  for (int64_t row = 0; row < rows; ++row, data += width) {
    runs.first.push_back(runs.all.size());
    for (int32_t x = 0; x < width;) {
      const T value = data[x];
      const int32_t begin = x;
      x = std::max(begin + 1, end_of_run(data, x, width));  // NaN equals nothing
      if (value != 0 && !is_nan(value)) runs.all.push_back({begin, x, value});
    }
    if (runs.all.size() > INT32_MAX) {
      throw DataError(
          "more than {} runs of equal voxels, too many for labels of 32 bits; label the image in "
          "parts",
          INT32_MAX);
    }
  }
  runs.first.push_back(runs.all.size());
  return runs;
}

/// Union-find; a root is the first of its set.
int32_t find_root(std::vector<int32_t>& parents, int32_t i) {
  int32_t* const parent = parents.data();
  while (parent[i] != i) i = parent[i] = parent[parent[i]];  // halves the path
  return i;
}
void join(std::vector<int32_t>& parents, int32_t a, int32_t b) {
  a = find_root(parents, a);
  b = find_root(parents, b);
  parents[static_cast<std::size_t>(std::max(a, b))] = std::min(a, b);
}

/// Joins the runs of two rows that overlap, or touch when `reach` is 1.
template <class T>
void join_rows(const Runs<T>& runs,
               std::size_t row,
               std::size_t other,
               int32_t reach,
               std::vector<int32_t>& parents) {
  std::size_t first = runs.first[other];
  const std::size_t end = runs.first[other + 1];
  for (std::size_t i = runs.first[row]; i < runs.first[row + 1]; ++i) {
    const Run<T>& run = runs.all[i];
    while (first < end && runs.all[first].end + reach <= run.begin) ++first;
    for (std::size_t k = first; k < end && runs.all[k].begin < run.end + reach; ++k) {
      if (runs.all[k].value == run.value)
        join(parents, static_cast<int32_t>(i), static_cast<int32_t>(k));
    }
  }
}

template <class T>
void join_all(const Runs<T>& runs,
              const at::Tensor& volume,
              int64_t connectivity,
              std::vector<int32_t>& parents) {
  const int64_t depth = volume.size(0), height = volume.size(1);
  for (int64_t z = 0; z < depth; ++z) {
    for (int64_t y = 0; y < height; ++y) {
      for (const auto& [dz, dy] : {std::pair{-1, -1}, {-1, 0}, {-1, 1}, {0, -1}}) {
        const int64_t axes = std::abs(dz) + std::abs(dy);
        if (axes > connectivity || z + dz < 0 || y + dy < 0 || y + dy >= height) continue;
        join_rows(runs,
                  static_cast<std::size_t>(z * height + y),
                  static_cast<std::size_t>((z + dz) * height + y + dy),
                  axes < connectivity ? 1 : 0,
                  parents);
      }
    }
  }
}

template <class T>
Components components_of(const at::Tensor& volume, int64_t connectivity) {
  const Runs<T> runs = runs_of<T>(volume);
  std::vector<int32_t> numbers(runs.all.size());  // first the union-find's parents, then labels
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<int32_t>(i);
  join_all(runs, volume, connectivity, numbers);
  Components found{at::empty(volume.sizes(), at::kInt), 0, {volume.numel()}};
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto parent = static_cast<std::size_t>(numbers[i]);  // a parent comes before
    numbers[i] = parent == i ? static_cast<int32_t>(++found.count) : numbers[parent];
    if (parent == i) found.sizes.push_back(0);
    const int64_t length = runs.all[i].end - runs.all[i].begin;
    found.sizes[static_cast<std::size_t>(numbers[i])] += length;
    found.sizes[0] -= length;
  }
  int32_t* labels = found.labels.mutable_data_ptr<int32_t>();
  const int64_t width = volume.size(2), rows = volume.size(0) * volume.size(1);
  at::parallel_for(0, rows, std::max<int64_t>(1, 65536 / width), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      int32_t* const line = labels + row * width;
      int32_t* at = line;
      const auto r = static_cast<std::size_t>(row);
      for (std::size_t i = runs.first[r]; i < runs.first[r + 1]; ++i) {
        std::fill(at, line + runs.all[i].begin, 0);
        at = line + runs.all[i].end;
        std::fill(line + runs.all[i].begin, at, numbers[i]);
      }
      std::fill(at, line + width, 0);
    }
  });
  return found;
}

}  // namespace

Components connected_components(const at::Tensor& values, int64_t connectivity) {
  connectivity = checked_connectivity(connectivity, values.dim());
  const at::ScalarType type = values.scalar_type();
  const bool is_byte = type == at::kBool || type == at::kByte;
  const bool is_integral = at::isIntegralType(type, /*includeBool=*/true);
  at::Tensor volume = as_volume(values, is_byte ? type : is_integral ? at::kInt : at::kFloat);
  if (volume.numel() == 0) return {at::zeros(values.sizes(), at::kInt), 0, {0}};
  if (volume.size(2) > INT32_MAX - 1)
    throw DataError("rows of {} voxels, expected at most {}", volume.size(2), INT32_MAX - 1);
  if (type == at::kBool) volume = volume.view(at::kByte);
  Components found = is_byte       ? components_of<uint8_t>(volume, connectivity)
                     : is_integral ? components_of<int32_t>(volume, connectivity)
                                   : components_of<float>(volume, connectivity);
  found.labels = found.labels.reshape(values.sizes());
  return found;
}

StitchedComponents::StitchedComponents(int64_t connectivity, int64_t dims)
    : connectivity_(checked_connectivity(connectivity, dims)), dims_(dims) {}

at::Tensor StitchedComponents::add(const at::Tensor& rows) {
  if (rows.dim() != dims_ ||
      (last_values_.defined() && rows.sizes().slice(1) != last_values_.sizes().slice(1))) {
    throw DataError(
        "a slab of {} dimensions that does not fit those before, expected {} and rows of one size",
        rows.dim(),
        dims_);
  }
  Components found = connected_components(rows, connectivity_);
  const auto offset = std::ssize(parents_) - 1;
  if (offset + found.count > INT32_MAX)
    throw DataError("more than {} components, too many for 32 bits", INT32_MAX);
  if (offset > 0) found.labels.add_(found.labels.ne(0), offset);
  for (int64_t i = 1; i <= found.count; ++i) parents_.push_back(static_cast<int32_t>(offset + i));
  if (rows.size(0) == 0) return found.labels;
  if (last_values_.defined()) stitch(rows.narrow(0, 0, 1), found.labels.narrow(0, 0, 1));
  last_values_ = rows.narrow(0, rows.size(0) - 1, 1).clone();
  last_labels_ = found.labels.narrow(0, rows.size(0) - 1, 1).clone();
  return found.labels;
}

/// Joins components of the last row before and of the first row of the new slab: these two rows
/// are taken as an image, whose components show which labels belong together.
void StitchedComponents::stitch(const at::Tensor& values, const at::Tensor& labels) {
  const at::Tensor seam =
      connected_components(at::cat({last_values_, values}), connectivity_).labels;
  const at::Tensor both = at::cat({last_labels_, labels});
  const int32_t* component = seam.const_data_ptr<int32_t>();
  const int32_t* label = both.const_data_ptr<int32_t>();
  std::vector<int32_t> label_of;  // the first label of each component of the seam
  for (int64_t i = 0; i < seam.numel(); ++i) {
    const auto c = static_cast<std::size_t>(component[i]);
    if (c == 0) continue;
    if (c >= label_of.size()) label_of.resize(c + 1, 0);
    if (label_of[c] == 0) label_of[c] = label[i];
    if (label_of[c] != label[i]) join(parents_, label_of[c], label[i]);
  }
}

std::vector<int32_t> StitchedComponents::finish() const {
  std::vector<int32_t> numbers(parents_.size());
  int32_t count = 0;
  for (std::size_t i = 1; i < parents_.size(); ++i) {
    const auto parent = static_cast<std::size_t>(parents_[i]);
    numbers[i] = parent == i ? ++count : numbers[parent];
  }
  return numbers;
}

int64_t StitchedComponents::count() const {
  int64_t count = 0;
  for (std::size_t i = 1; i < parents_.size(); ++i)
    count += parents_[i] == static_cast<int32_t>(i) ? 1 : 0;
  return count;
}

}  // namespace cytra::ops
