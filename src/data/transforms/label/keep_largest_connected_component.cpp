// KeepLargestConnectedComponentd: clears all but the largest regions of each label. Source:
// monai.transforms.KeepLargestConnectedComponentd.
#include <map>
#include <numeric>

#include "data/transforms/per_key.h"
#include "ops/connected_regions.h"

namespace cytra::data {
namespace {

struct KeepLargestConnectedComponentd : KeyOptions {
  std::vector<int64_t> applied_labels;
  std::optional<bool> is_onehot;
  bool independent = true;
  std::optional<int64_t> connectivity;
  int64_t num_components = 1;
  template <class V>
  void visit(V& v) {
    KeyOptions::visit(v);
    v("applied_labels", applied_labels, "labels to treat, channels of one-hot; null: all but 0");
    v("is_onehot", is_onehot, "a channel for each label; null: when there are several channels");
    v("independent", independent, "each label by itself; false: what they cover together");
    v("connectivity", connectivity, "1: faces, 2: edges too, 3: corners too; null: all", 1, 3);
    v("num_components", num_components, "regions to keep", 1, 1e9);
  }

  at::Tensor operator()(const at::Tensor& image) const {
    const bool onehot = is_onehot.value_or(image.size(0) > 1);
    if (!onehot && image.size(0) != 1)
      throw DataError(std::to_string(image.size(0)) + " channels, expected 1 of labels");
    return onehot ? of_channels(image) : of_labels(image);
  }

 private:
  at::Tensor of_labels(const at::Tensor& image) const {
    const at::Tensor labels = image[0];
    at::Tensor treated = applied_labels.empty() ? labels.ne(0) : at::zeros_like(labels, at::kBool);
    for (const int64_t label : applied_labels) treated = treated.logical_or(labels.eq(label));
    // Regions are of one value: the label, or 1 for all of them.
    const at::Tensor values = independent ? labels.masked_fill(treated.logical_not(), 0) : treated;
    return image.masked_fill(to_clear(values), 0);
  }
  at::Tensor of_channels(const at::Tensor& image) const {
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
  /// Where a value's regions are beyond its num_components largest. Of equal ones the later counts
  /// as larger; in the peer an unstable sort decides.
  at::Tensor to_clear(const at::Tensor& given) const {
    const at::Tensor values = given.to(at::kFloat).contiguous();
    const ops::Regions regions = ops::connected_regions(values, connectivity.value_or(0));
    const float* data = values.const_data_ptr<float>();
    std::vector<int64_t> sizes(static_cast<std::size_t>(regions.count) + 1);
    std::vector<float> value_of(sizes.size());
    for (std::size_t i = 0; i < regions.labels.size(); ++i) {
      const auto region = static_cast<std::size_t>(regions.labels[i]);
      ++sizes[region];
      value_of[region] = data[i];
    }
    std::vector<std::size_t> order(sizes.size() - 1);  // largest first
    std::iota(order.rbegin(), order.rend(), std::size_t{1});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return sizes[a] > sizes[b];
    });
    std::map<float, int64_t> kept;
    std::vector<bool> clear(sizes.size());
    for (const std::size_t region : order)
      clear[region] = kept[value_of[region]]++ >= num_components;
    at::Tensor mask = at::empty_like(values, at::kBool);
    bool* out = mask.mutable_data_ptr<bool>();
    for (const int32_t region : regions.labels) *out++ = clear[static_cast<std::size_t>(region)];
    return mask;
  }
};
CYTRA_REGISTER(Transform, PerKey<KeepLargestConnectedComponentd>, "KeepLargestConnectedComponentd");

}  // namespace
}  // namespace cytra::data
