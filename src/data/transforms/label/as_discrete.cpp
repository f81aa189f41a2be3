// AsDiscreted: classes from scores, channels from classes, 0 and 1 by a threshold, whole numbers;
// in this order. Source: monai.transforms.AsDiscreted.

#include "config/registry.h"
#include "data/sample/spatial_options.h"
#include "ops/labels/operations.h"

namespace cytra::data::spatial {
namespace {

struct AsDiscreted : KeyOptions {
  std::vector<bool> argmax{false};
  std::vector<std::optional<int64_t>> to_onehot{std::nullopt};
  std::vector<std::optional<double>> threshold{std::nullopt};
  std::vector<std::optional<std::string>> rounding{std::nullopt};
  void visit(auto& v) {
    KeyOptions::visit(v);
    v("argmax", argmax, "the channel with the largest value; or one per key");
    v("to_onehot", to_onehot, "a channel for each of so many classes; or one per key");
    v("threshold",
      threshold,
      "values from here on become 1, others 0; 0.5 makes a mask of instance labels; or one per "
      "key");
    v("rounding", rounding, "torchrounding: to whole numbers; or one per key");
    v("keepdim", config::Unused{{"true"}}, "images have a channel");
  }
  void check() {
    if (to_onehot.empty()) to_onehot.emplace_back();  // null
    if (threshold.empty()) threshold.emplace_back();
    if (rounding.empty()) rounding.emplace_back();
    check_per_key("argmax", argmax, *this);
    check_per_key("to_onehot", to_onehot, *this);
    check_per_key("threshold", threshold, *this);
    check_per_key("rounding", rounding, *this);
    bool is_idle = true;
    for (std::size_t key = 0; key < keys.size(); ++key) {
      const ops::AsDiscrete one = of(key);
      if (!one.is_idle()) one.check();
      is_idle = is_idle && one.is_idle();
    }
    if (is_idle) ops::AsDiscrete().check();
  }
  ops::AsDiscrete of(std::size_t key) const {
    return {
        of_key(argmax, key), of_key(to_onehot, key), of_key(threshold, key), of_key(rounding, key)};
  }

  void operator()(Sample& sample) const {
    for_each(sample, [&](const at::Tensor& image, std::size_t key, auto&) {
      return of(key)(image).to(at::kFloat);
    });
  }
};
CYTRA_REGISTER(Transform, PerSample<AsDiscreted>, "AsDiscreted");

}  // namespace
}  // namespace cytra::data::spatial
