// TemperatureScaling: the temperature T by which logits are divided so that the probabilities of
// what is known fit best: the least negative log-likelihood. Source: Guo et al., On calibration of
// modern neural networks, 2017, arXiv:1706.04599.
#include <cmath>

#include <ATen/ATen.h>

#include "config/registry.h"
#include "metrics/metric.h"

namespace cytra::metrics {
namespace {

/// The sums are the negative log-likelihood at each step, and the number of voxels.
class TemperatureScaling final : public SumsMetric {
 public:
  struct Options {
    std::optional<bool> multilabel;
    void visit(auto& v) {
      v("multilabel", multilabel, "labels do not exclude each other; null: as the task says");
    }
  };
  explicit TemperatureScaling(const Options& options)
      : SumsMetric({2 * kSteps + 2}), is_multilabel_(options.multilabel.value_or(false)) {}
  Input input() const override { return Input::probabilities; }
  void update(const Compared& batch) override {
    check_shapes("temperature", batch);
    const bool is_exclusive = !is_multilabel_ && batch.truth.size(1) > 1;
    const at::Tensor p = batch.prediction.to(at::kFloat), is = batch.truth.to(at::kFloat);
    // Logits but for a term that all classes share.
    const at::Tensor logits = is_exclusive ? p.clamp_min(1e-30).log() : at::logit(p, 1e-7);
    const at::Tensor known =
        batch.mask.defined() ? batch.mask.to(at::kFloat) : at::ones_like(is.slice(1, 0, 1));
    const auto sum_over = [&](const at::Tensor& losses) {
      return (losses * known).sum(at::kDouble);
    };
    std::vector<at::Tensor> sums;
    for (int64_t i = -kSteps; i <= kSteps; ++i) {
      const at::Tensor scaled = logits * (1 / temperature(static_cast<double>(i)));
      sums.push_back(sum_over(is_exclusive ? scaled.logsumexp(1, true) - (scaled * is).sum(1, true)
                                           : at::softplus(scaled) - scaled * is));
    }
    sums.push_back(sum_over(at::ones_like(is_exclusive ? known : is)));
    add(at::stack(sums));
  }
  std::map<std::string, double> compute() const override {
    const at::Tensor host = sums_.cpu();
    const double* const losses = host.const_data_ptr<double>();
    if (losses[2 * kSteps + 1] == 0 || !host.isfinite().all().item<bool>())
      return {{"temperature", std::nan("")}};
    const int64_t best = host.slice(0, 0, 2 * kSteps + 1).argmin().item<int64_t>();
    if (best == 0 || best == 2 * kSteps)
      return {{"temperature", temperature(static_cast<double>(best - kSteps))}};
    // The lowest point of the parabola through three steps.
    const double before = losses[best - 1], at = losses[best], after = losses[best + 1];
    const double bend = before - 2 * at + after;
    const double shift = bend > 0 ? (before - after) / (2 * bend) : 0;
    return {{"temperature", temperature(static_cast<double>(best - kSteps) + shift)}};
  }

 private:
  static constexpr int64_t kSteps = 20;  // to each side of T = 1, from 0.1 to 10
  static double temperature(double step) { return std::exp2(step / 6); }
  bool is_multilabel_;
};
CYTRA_REGISTER(Metric, TemperatureScaling, "TemperatureScaling");

}  // namespace
}  // namespace cytra::metrics
