// ExponentialLR and ConstantLR (factor 1). Source: torch.optim.lr_scheduler.ExponentialLR, per
// optimizer step.
#include <cmath>

#include "config/registry.h"
#include "training/scheduler.h"

namespace cytra::training {
namespace {

class ExponentialLR final : public Scheduler {
 public:
  struct Options {
    double gamma = 1;
    template <class V>
    void visit(V& v) {
      v("gamma", gamma, "factor per optimizer step", 0, 1);
    }
  };
  explicit ExponentialLR(const Options& options) : options_(options) {}
  double lr(double base_lr, int64_t step, int64_t /*total*/) const override {
    return base_lr * std::pow(options_.gamma, static_cast<double>(step));
  }

 private:
  Options options_;
};
CYTRA_REGISTER(Scheduler, ExponentialLR, "ExponentialLR");

}  // namespace
}  // namespace cytra::training
