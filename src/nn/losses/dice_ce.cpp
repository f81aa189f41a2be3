// DiceCELoss: Dice plus cross-entropy. Arguments and values follow monai.losses.DiceCELoss
// (reduction mean or sum), `multilabel` apart: MONAI's cross-entropy over several channels is
// always that of classes which exclude each other.
#include <ATen/ATen.h>
#include <ATen/core/Reduction.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "config/registry.h"
#include "nn/loss.h"

namespace cytra::nn {
namespace {

class DiceCELoss final : public Loss {
 public:
  struct Options : LossOptions {
    bool include_background = true;
    std::optional<bool> to_onehot_y, sigmoid, softmax, multilabel;
    bool squared_pred = false, jaccard = false, batch = false;
    std::string reduction = "mean";
    double smooth_nr = 1e-5, smooth_dr = 1e-5, lambda_dice = 1, lambda_ce = 1, label_smoothing = 0;
    template <class V>
    void visit(V& v) {
      v("include_background", include_background, "count channel 0 in the Dice part");
      v("to_onehot_y", to_onehot_y, "target holds class numbers; null: as the task says, else no");
      v("sigmoid", sigmoid, "Dice of each channel's logistic function; null: as the task says");
      v("softmax", softmax, "Dice of the softmax over channels; null: as the task says");
      v("multilabel",
        multilabel,
        "channels are masks of their own: binary cross-entropy of each; null: as the task says");
      v("squared_pred", squared_pred, "squares in the denominator");
      v("jaccard", jaccard, "Jaccard instead of Dice");
      v("batch", batch, "one Dice over the batch instead of one per image");
      v("reduction", reduction, "over images and classes", {"mean", "sum"});
      v("smooth_nr", smooth_nr, "added to the numerator", 0, 1e9);
      v("smooth_dr", smooth_dr, "added to the denominator", 0, 1e9);
      v("label_smoothing", label_smoothing, "of the cross-entropy over several channels", 0, 1);
      v("lambda_dice", lambda_dice, "weight of the Dice part", 0, 1e9);
      v("lambda_ce", lambda_ce, "weight of the cross-entropy", 0, 1e9);
      LossOptions::visit(v);
    }
    void check() const {
      if (sigmoid.value_or(false) && softmax.value_or(false))
        throw ConfigError("DiceCELoss: choose sigmoid or softmax, not both");
      if (multilabel.value_or(false) && (softmax.value_or(false) || to_onehot_y.value_or(false)))
        throw ConfigError("DiceCELoss: multilabel goes with sigmoid, not softmax or to_onehot_y");
    }
  };
  explicit DiceCELoss(const Options& options)
      : Loss(options),
        options_(options),
        to_onehot_y_(options.to_onehot_y.value_or(false)),
        sigmoid_(options.sigmoid.value_or(false)),
        softmax_(options.softmax.value_or(false)),
        multilabel_(options.multilabel.value_or(false)) {}

 protected:
  at::Tensor compute(const at::Tensor& logits,
                     const at::Tensor& target,
                     const at::Tensor& mask) const override {
    if (mask.defined()) throw std::logic_error("DiceCELoss: no mask yet");
    const int64_t classes = logits.size(1);
    at::Tensor truth = target;  // (N,K,...)
    if (to_onehot_y_ && classes > 1 && target.size(1) == 1) {
      std::vector<int64_t> shape(static_cast<std::size_t>(target.dim()), 1);
      shape[1] = classes;
      truth = target.eq(at::arange(classes, target.options()).view(shape)).to(logits.scalar_type());
    }
    if (truth.sizes() != logits.sizes()) {
      throw DataError(
          fmt::format("DiceCELoss: target ({}) does not fit the logits ({}); for class numbers set "
                      "to_onehot_y=true",
                      fmt::join(target.sizes(), ","),
                      fmt::join(logits.sizes(), ",")));
    }
    return options_.lambda_dice * dice(logits, truth) +
           options_.lambda_ce * cross_entropy(logits, truth, target);
  }

 private:
  at::Tensor dice(const at::Tensor& logits, at::Tensor truth) const {
    at::Tensor p = sigmoid_                         ? at::sigmoid(logits)
                   : softmax_ && logits.size(1) > 1 ? at::softmax(logits, 1)
                                                    : logits;
    if (!options_.include_background && p.size(1) > 1) {
      p = p.narrow(1, 1, p.size(1) - 1);
      truth = truth.narrow(1, 1, truth.size(1) - 1);
    }
    std::vector<int64_t> dims;
    for (int64_t d = 2; d < p.dim(); ++d) dims.push_back(d);
    if (options_.batch) dims.insert(dims.begin(), 0);
    const at::Tensor overlap = (p * truth).sum(dims);
    const at::Tensor total = options_.squared_pred ? p.square().sum(dims) + truth.square().sum(dims)
                                                   : p.sum(dims) + truth.sum(dims);
    const at::Tensor denominator = options_.jaccard ? 2 * (total - overlap) : total;
    const at::Tensor losses =
        1 - (2 * overlap + options_.smooth_nr) / (denominator + options_.smooth_dr);
    return options_.reduction == "mean" ? losses.mean() : losses.sum();
  }
  at::Tensor cross_entropy(const at::Tensor& logits,
                           const at::Tensor& truth,
                           const at::Tensor& target) const {
    const auto reduction = options_.reduction == "mean" ? at::Reduction::Mean : at::Reduction::Sum;
    if (logits.size(1) == 1 || multilabel_)
      return at::binary_cross_entropy_with_logits(
          logits, truth.to(logits.scalar_type()), {}, {}, reduction);
    // Class numbers, or one probability per class: with class numbers CUDA has no deterministic
    // kernel.
    const bool has_numbers = target.size(1) == 1 && !at::globalContext().deterministicAlgorithms();
    const at::Tensor classes =
        has_numbers ? target.squeeze(1).to(at::kLong) : truth.to(logits.scalar_type());
    return at::cross_entropy_loss(logits, classes, {}, reduction, -100, options_.label_smoothing);
  }
  Options options_;
  bool to_onehot_y_, sigmoid_, softmax_, multilabel_;
};
CYTRA_REGISTER(Loss, DiceCELoss, "DiceCELoss");

}  // namespace
}  // namespace cytra::nn
