// DiceCELoss: Dice plus cross-entropy. Arguments and values follow monai.losses.DiceCELoss
// (reduction mean or sum).
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
  struct Options {
    bool include_background = true, to_onehot_y = false, sigmoid = false, softmax = false;
    bool squared_pred = false, jaccard = false, batch = false;
    std::string reduction = "mean";
    double smooth_nr = 1e-5, smooth_dr = 1e-5, lambda_dice = 1, lambda_ce = 1, label_smoothing = 0;
    template <class V>
    void visit(V& v) {
      v("include_background", include_background, "count channel 0 in the Dice part");
      v("to_onehot_y", to_onehot_y, "target holds class numbers");
      v("sigmoid", sigmoid, "Dice of each channel's logistic function");
      v("softmax", softmax, "Dice of the softmax over channels");
      v("squared_pred", squared_pred, "squares in the denominator");
      v("jaccard", jaccard, "Jaccard instead of Dice");
      v("batch", batch, "one Dice over the batch instead of one per image");
      v("reduction", reduction, "over images and classes", {"mean", "sum"});
      v("smooth_nr", smooth_nr, "added to the numerator", 0, 1e9);
      v("smooth_dr", smooth_dr, "added to the denominator", 0, 1e9);
      v("label_smoothing", label_smoothing, "of the cross-entropy over several channels", 0, 1);
      v("lambda_dice", lambda_dice, "weight of the Dice part", 0, 1e9);
      v("lambda_ce", lambda_ce, "weight of the cross-entropy", 0, 1e9);
    }
    void check() const {
      if (sigmoid && softmax) throw ConfigError("DiceCELoss: choose sigmoid or softmax, not both");
    }
  };
  explicit DiceCELoss(const Options& options) : options_(options) {}

  at::Tensor operator()(const at::Tensor& logits, const at::Tensor& target) const override {
    const int64_t classes = logits.size(1);
    at::Tensor truth = target;  // (N,K,...)
    if (options_.to_onehot_y && classes > 1) {
      truth = at::one_hot(target.squeeze(1).to(at::kLong), classes)
                  .movedim(-1, 1)
                  .to(logits.scalar_type());
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
    at::Tensor p = options_.sigmoid                         ? at::sigmoid(logits)
                   : options_.softmax && logits.size(1) > 1 ? at::softmax(logits, 1)
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
    if (logits.size(1) == 1)
      return at::binary_cross_entropy_with_logits(
          logits, truth.to(logits.scalar_type()), {}, {}, reduction);
    // Class numbers, or one probability per class.
    const at::Tensor classes =
        target.size(1) == 1 ? target.squeeze(1).to(at::kLong) : truth.to(logits.scalar_type());
    return at::cross_entropy_loss(logits, classes, {}, reduction, -100, options_.label_smoothing);
  }
  Options options_;
};
CYTRA_REGISTER(Loss, DiceCELoss, "DiceCELoss");

}  // namespace
}  // namespace cytra::nn
