#include "ops/labels/operations.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <unordered_map>

#include <ATen/ATen.h>

#include "base/error.h"
#include "base/lists.h"
#include "ops/boxes/label_boxes.h"
#include "ops/labels/component_rows.h"
#include "ops/labels/volume.h"

namespace cytra::ops {
namespace {

/// Calls change(begin, end, value) for each run of equal values.
template <class T, class Change>
void for_runs(const T* data, int64_t count, const Change& change) {
  for (int64_t i = 0; i < count;) {
    const int64_t begin = i++;
    while (i < count && data[i] == data[begin]) ++i;
    change(begin, i, data[begin]);
  }
}

/// Clears objects that have fewer voxels than `smallest`, where each has a number; dense, in
/// place.
template <class T>
void clear_numbers(at::Tensor& labels, double smallest) {
  T* data = labels.mutable_data_ptr<T>();
  std::unordered_map<T, int64_t> sizes;
  for_runs(data, labels.numel(), [&](int64_t begin, int64_t end, T number) {
    if (!is_nan(number)) sizes[number] += end - begin;
  });
  for_runs(data, labels.numel(), [&](int64_t begin, int64_t end, T number) {
    if (is_nan(number) || static_cast<double>(sizes[number]) < smallest)
      std::fill(data + begin, data + end, T{0});
  });
}

/// Where components of a mask have fewer voxels than `smallest`.
at::Tensor small_components(const at::Tensor& mask, int64_t connectivity, double smallest) {
  const Components found = connected_components(mask, connectivity);
  std::vector<bool> is_small(found.sizes.size());
  for (std::size_t c = 1; c < is_small.size(); ++c)
    is_small[c] = static_cast<double>(found.sizes[c]) < smallest;
  const int32_t* label = found.labels.const_data_ptr<int32_t>();
  at::Tensor small = at::empty(mask.sizes(), at::kBool);
  bool* out = small.mutable_data_ptr<bool>();
  for (int64_t i = 0; i < mask.numel(); ++i) out[i] = is_small[static_cast<std::size_t>(label[i])];
  return small;
}

/// Which components are not among the `most` largest of their value; [0] is the background.
std::vector<bool> beyond_largest(const std::vector<int64_t>& sizes,
                                 const std::vector<double>& values,
                                 int64_t most) {
  std::vector<std::size_t> order(sizes.size() - 1);  // largest first
  std::iota(order.rbegin(), order.rend(), std::size_t{1});
  std::ranges::stable_sort(order, std::greater(), [&](std::size_t i) { return sizes[i]; });
  std::map<double, int64_t> kept;
  std::vector<bool> is_beyond(sizes.size());
  for (const std::size_t i : order) is_beyond[i] = kept[values[i]]++ >= most;
  return is_beyond;
}

/// Finds the part of a box that is connected to its outside, by a flood from a border round it.
class Flood {
 public:
  Flood(int64_t connectivity, int64_t dims) {
    for (const Offset& offset : neighbours(connectivity)) {
      if (dims == 3 || offset[0] == 0) neighbours_.push_back(offset);
    }
  }

  /// Sets voxels of `box` with another value that are not connected to the outside to `value`.
  template <class T>
  void fill(at::Tensor& volume, const Box& box, T value) {
    const int64_t height = box.size(1) + 2, width = box.size(2) + 2;
    state_.assign(static_cast<std::size_t>((box.size(0) + 2) * height * width), kFree);
    steps_.clear();
    for (const auto& [z, y, x] : neighbours_) steps_.push_back((z * height + y) * width + x);
    T* const data = volume.mutable_data_ptr<T>();
    const auto for_rows = [&](const auto& change) {
      for (int64_t z = 0; z < box.size(0); ++z) {
        for (int64_t y = 0; y < box.size(1); ++y) {
          change(data + ((z + box.first[0]) * volume.size(1) + y + box.first[1]) * volume.size(2) +
                     box.first[2],
                 state_.data() + ((z + 1) * height + y + 1) * width + 1);
        }
      }
    };
    for_rows([&](const T* row, uint8_t* state) {
      for (int64_t x = 0; x < box.size(2); ++x) state[x] = row[x] == value ? kLabel : kFree;
    });
    from_border(height * width);
    for_rows([&](T* row, const uint8_t* state) {
      for (int64_t x = 0; x < box.size(2); ++x) {
        if (state[x] == kFree) row[x] = value;
      }
    });
  }

 private:
  enum : uint8_t { kFree, kLabel, kOut };
  void from_border(int64_t corner) {
    const auto count = std::ssize(state_);
    state_[static_cast<std::size_t>(corner)] = kOut;
    stack_.assign(1, corner);
    while (!stack_.empty()) {
      const int64_t voxel = stack_.back();
      stack_.pop_back();
      for (const int64_t step : steps_) {
        const int64_t next = voxel + step;  // beyond a side of the border is its other side
        if (next < 0 || next >= count || state_[static_cast<std::size_t>(next)] != kFree) continue;
        state_[static_cast<std::size_t>(next)] = kOut;
        stack_.push_back(next);
      }
    }
  }

  std::vector<Offset> neighbours_;
  std::vector<int64_t> steps_, stack_;
  std::vector<uint8_t> state_;
};

/// Sets what a box of a label encloses of others to that label, as Flood, by slabs of `voxels`: for
/// large boxes. Components of all but the label are found twice, first to know which of them are
/// at a side. Shape: part ([Z,]Y,X).
template <class T>
void fill_by_slabs(const at::Tensor& part, T label, int64_t connectivity, int64_t voxels) {
  const int64_t length = part.size(0);
  const int64_t count = std::max<int64_t>(1, voxels * length / part.numel());
  StitchedComponents components(connectivity, part.dim()), again = components;
  const auto slab_at = [&](int64_t first) {
    return part.narrow(0, first, std::min(count, length - first));
  };
  std::vector<bool> is_at_side;
  const auto mark = [&](const at::Tensor& side) {
    const at::Tensor numbers = side.contiguous();
    const int32_t* number = numbers.const_data_ptr<int32_t>();
    for (int64_t i = 0; i < numbers.numel(); ++i) {
      const auto at = static_cast<std::size_t>(number[i]);
      if (at >= is_at_side.size()) is_at_side.resize(at + 1);
      is_at_side[at] = true;
    }
  };
  for (int64_t first = 0; first < length; first += count) {
    const at::Tensor found = components.add(slab_at(first).ne(label));
    if (first == 0) mark(found.select(0, 0));
    if (first + count >= length) mark(found.select(0, found.size(0) - 1));
    for (int64_t axis = 1; axis < part.dim(); ++axis) {
      mark(found.select(axis, 0));
      mark(found.select(axis, part.size(axis) - 1));
    }
  }
  const std::vector<int32_t> numbers = components.finish();
  is_at_side.resize(numbers.size());
  std::vector<bool> is_outside(numbers.size());  // whole components
  for (std::size_t i = 0; i < numbers.size(); ++i)
    if (i == 0 || is_at_side[i]) is_outside[static_cast<std::size_t>(numbers[i])] = true;
  for (int64_t first = 0; first < length; first += count) {
    const at::Tensor slab = slab_at(first), found = again.add(slab.ne(label));
    at::Tensor is_hole = at::empty(found.sizes(), at::kBool);
    const int32_t* number = found.const_data_ptr<int32_t>();
    std::transform(
        number, number + found.numel(), is_hole.mutable_data_ptr<bool>(), [&](int32_t i) {
          return !is_outside[static_cast<std::size_t>(numbers[static_cast<std::size_t>(i)])];
        });
    slab.masked_fill_(is_hole, label);
  }
}

/// Shape: labels ([Z,]Y,X) dense, written to.
template <class T>
void fill_labels(const at::Tensor& labels,
                 const std::vector<int64_t>& which,
                 int64_t connectivity,
                 int64_t flood_voxels) {
  at::Tensor volume = labels.dim() == 3 ? labels : labels.unsqueeze(0);
  const int64_t reach = checked_connectivity(connectivity, labels.dim());
  Flood flood(reach, labels.dim());
  for (const auto& [label, box] : boxes_of<T>(volume)) {
    const bool is_wanted = std::ranges::any_of(
        which, [l = label](int64_t other) { return static_cast<T>(other) == l; });
    if (!which.empty() && !is_wanted) continue;
    const at::Tensor part = labels.dim() == 3 ? box.part_of(volume) : box.part_of(volume)[0];
    if (part.numel() > flood_voxels) {
      fill_by_slabs<T>(part, label, reach, flood_voxels);
    } else {
      flood.fill<T>(volume, box, label);
    }
  }
}

at::Tensor channels_of(const at::Tensor& labels, int64_t classes) {
  if (labels.size(0) != 1) throw DataError("{} channels, expected 1 of classes", labels.size(0));
  const at::Tensor wrong = labels.ge(0)
                               .logical_and_(labels.lt(classes))
                               .logical_and_(labels.eq(labels.floor()))
                               .logical_not_();
  if (wrong.any().item<bool>()) {
    const at::Tensor values = labels.masked_select(wrong);
    throw DataError(
        "{} values (such as {:g}) are not classes from 0 to {}, which to_onehot expects",
        values.numel(),
        values[0].item<double>(),
        classes - 1);
  }
  const at::Tensor numbers = at::arange(classes, at::device(labels.device()).dtype(at::kLong));
  std::vector<int64_t> shape(static_cast<std::size_t>(labels.dim()), 1);
  shape[0] = classes;
  return labels.to(at::kLong).eq(numbers.reshape(shape));
}

}  // namespace

at::Tensor RemoveSmallObjects::operator()(const at::Tensor& image) const {
  if (image.size(0) != 1)
    throw DataError(std::to_string(image.size(0)) + " channels, expected 1 of labels");
  const double least = smallest(image.dim() - 1);
  if (image.numel() == 0) return image;
  if (!independent_channels || image.max().item<double>() <= 1) {
    const at::Tensor mask = independent_channels ? image[0].ne(0) : image[0].gt(0);
    const int64_t reach = std::min(connectivity.value_or(0), mask.dim());
    return image.masked_fill(small_components(mask, reach, least).unsqueeze(0), 0);
  }
  const bool is_integral = at::isIntegralType(image.scalar_type(), /*includeBool=*/false);
  at::Tensor labels =
      image.to(is_integral ? at::kInt : at::kFloat, /*non_blocking=*/false, /*copy=*/true)
          .contiguous();
  is_integral ? clear_numbers<int32_t>(labels, least) : clear_numbers<float>(labels, least);
  return labels.to(image.scalar_type());
}

std::unique_ptr<RowStep> RemoveSmallObjects::row_step(const std::vector<int64_t>& image,
                                                      const std::string& folder) const {
  if (!independent_channels) return nullptr;
  const auto choose = [least = smallest(std::ssize(image))](
                          const std::vector<ComponentRows::Component>& all) {
    std::unordered_map<int32_t, int64_t> sizes;
    for (const auto& [value, voxels] : all) sizes[value] += voxels;
    const bool is_mask = std::ranges::all_of(all, [](const auto& one) { return one.value <= 1; });
    return mapped(all, [&](const ComponentRows::Component& one) {
      const int64_t voxels = is_mask ? one.voxels : sizes.at(one.value);
      return static_cast<double>(voxels) < least ? 0 : one.value;
    });
  };
  const int64_t reach = std::min(connectivity.value_or(0), std::ssize(image));
  return std::make_unique<ComponentRows>(reach, image, folder, choose);
}

double RemoveSmallObjects::smallest(int64_t dims) const {
  if (by_measure && pixdim.size() != 1 && std::ssize(pixdim) != dims) {
    throw DataError(std::to_string(dims) + " spatial dimensions, expected as many in pixdim, or 1");
  }
  double volume = 1;
  for (int64_t d = 0; by_measure && d < dims; ++d)
    volume *= pixdim[pixdim.size() == 1 ? 0 : static_cast<std::size_t>(d)];
  return min_size / volume;
}

at::Tensor KeepLargestConnectedComponent::operator()(const at::Tensor& image) const {
  const bool onehot = is_onehot.value_or(image.size(0) > 1);
  if (!onehot && image.size(0) != 1)
    throw DataError(std::to_string(image.size(0)) + " channels, expected 1 of labels");
  return onehot ? of_channels(image) : of_labels(image);
}

at::Tensor KeepLargestConnectedComponent::of_labels(const at::Tensor& image) const {
  const at::Tensor labels = image[0];
  at::Tensor treated = applied_labels.empty() ? labels.ne(0) : at::zeros_like(labels, at::kBool);
  for (const int64_t label : applied_labels) treated.logical_or_(labels.eq(label));
  // Components are searched in one value: the label, or 1 for all labels.
  const at::Tensor values = independent ? labels.masked_fill(treated.logical_not(), 0) : treated;
  return image.masked_fill(to_clear(values), 0);
}

at::Tensor KeepLargestConnectedComponent::of_channels(const at::Tensor& image) const {
  std::vector<int64_t> channels = applied_labels;
  for (int64_t c = 1; applied_labels.empty() && c < image.size(0); ++c) channels.push_back(c);
  for (const int64_t c : channels) {
    if (c < 0 || c >= image.size(0)) {
      throw DataError("applied_labels has " + std::to_string(c) + ", expected a channel below " +
                      std::to_string(image.size(0)));
    }
  }
  at::Tensor result = image.clone();
  at::Tensor together;
  if (!independent && !channels.empty())
    together = to_clear(image.index_select(0, at::tensor(channels)).eq(1).any(0));
  for (const int64_t c : channels)
    result[c].masked_fill_(independent ? to_clear(image[c].gt(0)) : together, 0);
  return result;
}

/// Where components of a value are not among its num_components largest.
at::Tensor KeepLargestConnectedComponent::to_clear(const at::Tensor& values) const {
  const Components found = connected_components(values, connectivity.value_or(0));
  const int32_t* component = found.labels.const_data_ptr<int32_t>();
  const at::Tensor flat = values.flatten().to(at::kDouble);
  const double* value = flat.const_data_ptr<double>();
  std::vector<double> value_of(found.sizes.size());
  for (int64_t i = 0; i < values.numel(); ++i)
    value_of[static_cast<std::size_t>(component[i])] = value[i];
  const std::vector<bool> clear = beyond_largest(found.sizes, value_of, num_components);
  at::Tensor mask = at::empty(values.sizes(), at::kBool);
  bool* out = mask.mutable_data_ptr<bool>();
  for (int64_t i = 0; i < values.numel(); ++i)
    out[i] = clear[static_cast<std::size_t>(component[i])];
  return mask;
}

std::unique_ptr<RowStep> KeepLargestConnectedComponent::row_step(const std::vector<int64_t>& image,
                                                                 const std::string& folder) const {
  if (is_onehot.value_or(false) || !independent) return nullptr;
  const auto choose = [*this](const std::vector<ComponentRows::Component>& all) {
    std::vector<int64_t> sizes;
    std::vector<double> values;
    for (const auto& [value, voxels] : all) {
      sizes.push_back(voxels);
      values.push_back(value);
    }
    const std::vector<bool> clear = beyond_largest(sizes, values, num_components);
    std::vector<int32_t> kept;
    for (std::size_t number = 0; number < all.size(); ++number) {
      const bool is_treated =
          applied_labels.empty() || contains(applied_labels, int64_t{all[number].value});
      kept.push_back(clear[number] && is_treated ? 0 : all[number].value);
    }
    return kept;
  };
  return std::make_unique<ComponentRows>(connectivity.value_or(0), image, folder, choose);
}

at::Tensor FillHoles::operator()(const at::Tensor& image) const {
  const bool is_integral = at::isIntegralType(image.scalar_type(), /*includeBool=*/true);
  at::Tensor result =
      image.to(is_integral ? at::kInt : at::kFloat, /*non_blocking=*/false, /*copy=*/true)
          .contiguous();
  const auto fill = [&](const at::Tensor& labels, const std::vector<int64_t>& which) {
    is_integral ? fill_labels<int32_t>(labels, which, connectivity.value_or(0), flood_voxels)
                : fill_labels<float>(labels, which, connectivity.value_or(0), flood_voxels);
  };
  if (image.size(0) == 1) {
    fill(result[0], applied_labels);
    return result.to(image.scalar_type());
  }
  for (int64_t c = 1; c < image.size(0); ++c) {
    const bool is_applied =
        applied_labels.empty() || std::ranges::find(applied_labels, c) != applied_labels.end();
    if (!is_applied) continue;
    result[c].copy_(image[c].ne(0));
    fill(result[c], {1});
  }
  return result.to(image.scalar_type());
}

std::unique_ptr<RowStep> FillHoles::row_step(const std::vector<int64_t>& image,
                                             const std::string& folder) const {
  struct Rows final : KeptLabels {
    Rows(const FillHoles& own, const std::vector<int64_t>& image, const std::string& folder)
        : KeptLabels(image, folder), options(own) {}
    void change(at::Tensor& all) override {
      fill_labels<int32_t>(
          all, options.applied_labels, options.connectivity.value_or(0), options.flood_voxels);
    }
    const FillHoles options;
  };
  return std::make_unique<Rows>(*this, image, folder);
}

void AsDiscrete::check() const {
  if (to_onehot && (*to_onehot < 1 || *to_onehot > 65536))
    throw ConfigError("to_onehot: expected 1 to 65536 classes");
  if (rounding && *rounding != "torchrounding")
    throw ConfigError("rounding: '" + *rounding + "', expected torchrounding");
  if (is_idle()) throw ConfigError("expected argmax, to_onehot, threshold or rounding");
}

at::Tensor AsDiscrete::operator()(const at::Tensor& image) const {
  at::Tensor result = image;
  if (argmax) result = result.argmax(0, /*keepdim=*/true);
  if (to_onehot) result = channels_of(result, *to_onehot);
  if (threshold) result = result.ge(*threshold);
  if (rounding) result = result.to(at::kFloat).round();
  return result;
}

}  // namespace cytra::ops
