#include "nn/fold.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include <ATen/ATen.h>

#include "base/error.h"
#include "base/log.h"
#include "nn/blocks/layers.h"
#include "nn/model.h"

namespace cytra::nn {
namespace {

using Pairs = std::vector<std::pair<std::shared_ptr<Conv>, std::shared_ptr<Norm>>>;

/// Notes which batch norms read what a convolution gives, and how often each is run.
class Pairing final : public Watcher {
 public:
  explicit Pairing(const Model& model) {
    for (const auto& module : model.modules()) {
      if (auto conv = std::dynamic_pointer_cast<Conv>(module)) convs_[conv.get()] = conv;
      auto norm = std::dynamic_pointer_cast<Norm>(module);
      if (norm && norm->has_running_statistics() && !norm->is_folded) norms_[norm.get()] = norm;
    }
    before_ = std::exchange(watcher, this);
  }
  ~Pairing() override { watcher = before_; }
  Pairing& operator=(Pairing&&) = delete;

  bool has_norms() const { return !norms_.empty(); }
  void begin(const torch::nn::Module& module, const at::Tensor& input) override {
    running_.push_back(&module);
    if (dynamic_cast<const Dropout*>(&module) != nullptr)  // it may be sampled
      makers_.erase(input.unsafeGetTensorImpl());
    if (norms_.count(&module) == 0) return;
    ++runs_[&module];
    const auto maker = makers_.find(input.unsafeGetTensorImpl());
    if (maker != makers_.end()) ++reads_[{maker->second, &module}];
  }
  void end(const at::Tensor& output) override {
    const torch::nn::Module* module = running_.back();
    running_.pop_back();
    if (convs_.count(module) == 0) return;
    ++runs_[module];
    makers_[output.unsafeGetTensorImpl()] = module;
    outputs_.push_back(output);  // no other tensor has its address
  }
  /// The pairs in which each is run only with the other.
  Pairs pairs() const {
    Pairs all;
    for (const auto& [pair, reads] : reads_) {
      if (reads == runs_.at(pair.first) && reads == runs_.at(pair.second))
        all.emplace_back(convs_.at(pair.first), norms_.at(pair.second));
    }
    return all;
  }

 private:
  using Key = const torch::nn::Module*;
  std::map<Key, std::shared_ptr<Conv>> convs_;
  std::map<Key, std::shared_ptr<Norm>> norms_;
  std::map<const c10::TensorImpl*, Key> makers_;
  std::map<std::pair<Key, Key>, int64_t> reads_;  // of a convolution's outputs by a norm
  std::map<Key, int64_t> runs_;
  std::vector<at::Tensor> outputs_;
  std::vector<Key> running_;
  Watcher* before_;
};

/// An image that the model takes, of twice its smallest sides or 16 pixels.
at::Tensor small_image(const Model& model) {
  Sizes shape{1, model.in_channels()};
  const Sizes fixed = model.fixed_size();
  for (const int64_t side : fixed.empty() ? model.divisor() : fixed)
    shape.push_back(fixed.empty() ? std::max<int64_t>(2, (15 + side) / side) * side : side);
  int64_t count = 1;
  for (const int64_t side : shape) count *= side;
  return at::arange(count, model.parameters().front().options().requires_grad(false))
      .sin_()
      .view(shape);
}

/// Whether outputs are equal but for rounding: a fold of what has other readers is far off.
bool are_near(const std::vector<at::Tensor>& now, const std::vector<at::Tensor>& before) {
  constexpr double kRounding = 1e-4;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const double size = before[i].abs().max().item<double>();
    if (!((now[i] - before[i]).abs().max().item<double>() <= kRounding * size)) return false;
  }
  return true;
}

/// Folds the pairs, all of them, or none where the model then gives other outputs for the image.
bool fold_pairs(const Pairs& pairs,
                Model& model,
                const at::Tensor& image,
                const std::vector<at::Tensor>& expected) {
  std::vector<std::pair<at::Tensor, at::Tensor>> before;
  for (const auto& [conv, norm] : pairs) {
    before.emplace_back(conv->weight.clone(),
                        conv->bias.defined() ? conv->bias.clone() : at::zeros({}));
    const auto [scale, shift] = norm->scale_and_shift();
    conv->rescale(scale, shift);
    norm->is_folded = true;
  }
  if (are_near(model.all(image), expected)) return true;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    pairs[i].first->weight.copy_(before[i].first);
    pairs[i].first->bias.copy_(before[i].second);
    pairs[i].second->is_folded = false;
  }
  return false;
}

}  // namespace

int64_t fold(Model& model) {
  const at::NoGradGuard no_grad;
  Pairs pairs;
  const at::Tensor image = small_image(model);
  std::vector<at::Tensor> expected;
  {
    Pairing pairing(model);
    if (!pairing.has_norms()) return 0;
    try {
      expected = model.all(image);
    } catch (const DataError&) {  // an exported network that does not take such a small image
      return 0;
    }
    pairs = pairing.pairs();
  }
  auto count = std::ssize(pairs);
  if (!fold_pairs(pairs, model, image, expected)) {  // some convolution has other readers
    count = 0;
    for (const auto& pair : pairs) count += fold_pairs({pair}, model, image, expected) ? 1 : 0;
  }
  log::debug("model: {} batch norms became part of convolutions", count);
  return count;
}

}  // namespace cytra::nn
