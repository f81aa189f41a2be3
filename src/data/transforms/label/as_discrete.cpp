// AsDiscreted: classes out of scores, channels out of classes, 0 and 1 by a threshold, whole
// numbers; in this order. Source: monai.transforms.AsDiscreted.
#include <algorithm>

#include <ATen/ATen.h>

#include "config/registry.h"
#include "data/transforms/spatial_options.h"

namespace cytra::data::spatial {
namespace {

class AsDiscreted final : public Transform {
 public:
  struct Options : KeyOptions {
    std::vector<bool> argmax{false};
    std::vector<std::optional<int64_t>> to_onehot{std::nullopt};
    std::vector<std::optional<double>> threshold{std::nullopt};
    std::vector<std::optional<std::string>> rounding{std::nullopt};
    template <class V>
    void visit(V& v) {
      KeyOptions::visit(v);
      v("argmax", argmax, "the channel with the largest value; or one per key");
      v("to_onehot", to_onehot, "a channel for each of so many classes; or one per key");
      v("threshold",
        threshold,
        "values from here on become 1, others 0; 0.5 makes a mask of instance labels; or one per "
        "key");
      v("rounding", rounding, "torchrounding: to whole numbers; or one per key");
    }
    void check() {
      if (to_onehot.empty()) to_onehot.emplace_back();  // null
      if (threshold.empty()) threshold.emplace_back();
      if (rounding.empty()) rounding.emplace_back();
      check_per_key("argmax", argmax, *this);
      check_per_key("to_onehot", to_onehot, *this);
      check_per_key("threshold", threshold, *this);
      check_per_key("rounding", rounding, *this);
      for (const auto& classes : to_onehot) {
        if (classes && (*classes < 1 || *classes > 65536))
          throw ConfigError("to_onehot: expected 1 to 65536 classes");
      }
      for (const auto& name : rounding) {
        if (name && *name != "torchrounding")
          throw ConfigError("rounding: '" + *name + "', expected torchrounding");
      }
      const auto none = [](const auto& values) {
        return std::none_of(values.begin(), values.end(), [](const auto& v) { return !!v; });
      };
      if (none(argmax) && none(to_onehot) && none(threshold) && none(rounding))
        throw ConfigError("expected argmax, to_onehot, threshold or rounding");
    }
  };
  explicit AsDiscreted(const Options& options) : options_(options) {}

  void apply(Sample& sample, Rng&) const override {
    options_.for_each(sample, [&](const at::Tensor& image, std::size_t key) {
      at::Tensor result = image;
      if (of_key(options_.argmax, key)) result = result.argmax(0, /*keepdim=*/true);
      if (const auto classes = of_key(options_.to_onehot, key)) result = one_hot(result, *classes);
      if (const auto threshold = of_key(options_.threshold, key)) result = result.ge(*threshold);
      if (of_key(options_.rounding, key)) result = result.to(at::kFloat).round();
      return result.to(at::kFloat);
    });
  }

 private:
  static at::Tensor one_hot(const at::Tensor& labels, int64_t classes) {
    if (labels.size(0) != 1)
      throw DataError(fmt::format("{} channels, expected 1 of classes", labels.size(0)));
    const at::Tensor wrong = labels.ge(0)
                                 .logical_and_(labels.lt(classes))
                                 .logical_and_(labels.eq(labels.floor()))
                                 .logical_not_();
    if (wrong.any().item<bool>()) {
      const at::Tensor values = labels.masked_select(wrong);
      throw DataError(
          fmt::format("{} values (such as {:g}) are no class of 0..{}, as to_onehot expects",
                      values.numel(),
                      values[0].item<double>(),
                      classes - 1));
    }
    const at::Tensor numbers = at::arange(classes, at::kLong);
    std::vector<int64_t> shape(static_cast<std::size_t>(labels.dim()), 1);
    shape[0] = classes;
    return labels.to(at::kLong).eq(numbers.reshape(shape));
  }
  Options options_;
};
CYTRA_REGISTER(Transform, AsDiscreted, "AsDiscreted");

}  // namespace
}  // namespace cytra::data::spatial
