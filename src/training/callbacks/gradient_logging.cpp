// GradientLogging: 2-norms of gradients, and histograms. Follows
// cyto_dl.callbacks.GradientLoggingCallback (which logs the mean of the norms in a group once an
// epoch); names as lightning.pytorch.utilities.grad_norm.
#include <cmath>

#include <ATen/ATen.h>

#include "base/strings.h"
#include "config/registry.h"
#include "io/events/event_file.h"
#include "nn/model.h"
#include "training/callback.h"

namespace cytra::training {
namespace {

class GradientLogging final : public Callback {
 public:
  struct Options {
    int64_t grouping_level = 3, histogram_every_n_steps = 0;
    std::optional<int64_t> every_n_steps;
    void visit(auto& v) {
      v("grouping_level",
        grouping_level,
        "parts of a parameter's name that make a group with a norm of its own; -1: all",
        -1,
        100);
      v("every_n_steps", every_n_steps, "null: trainer.log_every_n_steps", 1, 1e9);
      v("histogram_every_n_steps",
        histogram_every_n_steps,
        "histograms of every parameter and its gradient; 0: none",
        0,
        1e9);
    }
  };
  explicit GradientLogging(const Options& options) : options_(options) {}

  void on_before_step(Context& context) override {
    if (context.loggers.empty()) return;
    const int64_t step = context.state.step + 1;  // the one to come
    const int64_t every = options_.every_n_steps.value_or(context.log_every_n_steps);
    const int64_t histogram_every = options_.histogram_every_n_steps;
    const bool is_due = step == 1 || step % every == 0;
    const bool has_histograms = histogram_every > 0 && step % histogram_every == 0;
    if (!is_due && !has_histograms) return;
    const at::NoGradGuard no_grad;
    const at::Tensor* scale = context.grad_scale;
    const double factor = scale != nullptr && scale->defined() ? 1 / scale->item<double>() : 1.0;
    if (is_due) measure(context, factor);
    if (has_histograms) log_histograms(context, factor, step);
  }
  void on_step_end(Context& context) override {
    if (!norms_.empty()) context.log_only(std::exchange(norms_, {}));
  }

 private:
  std::string group_of(const std::string& name) const {
    std::vector<std::string> parts = split(name, '.');
    if (options_.grouping_level >= 0)
      parts.resize(std::min(parts.size(), static_cast<std::size_t>(options_.grouping_level)));
    return join(parts, ".");
  }
  void measure(Context& context, double factor) {
    std::vector<std::string> names;
    std::vector<at::Tensor> gradients;
    for (const auto& item : context.task.model().named_parameters()) {
      if (!item.value().grad().defined()) continue;
      names.push_back(item.key());
      gradients.push_back(item.value().grad());
    }
    if (gradients.empty()) return;
    const at::Tensor norms = at::stack(at::_foreach_norm(gradients)).to(at::kCPU, at::kDouble);
    std::map<std::string, double> squares;
    double all = 0;
    for (std::size_t i = 0; i < names.size(); ++i) {
      const double norm = factor * norms.const_data_ptr<double>()[i];
      squares[group_of(names[i])] += norm * norm;
      all += norm * norm;
    }
    for (const auto& [group, square] : squares) {
      if (!group.empty()) norms_["grad_2.0_norm/" + group] = std::sqrt(square);
    }
    norms_["grad_2.0_norm_total"] = std::sqrt(all);
  }
  static void log_histograms(Context& context, double factor, int64_t step) {
    const auto log = [&](const std::string& name, const at::Tensor& tensor) {
      const at::Tensor values = tensor.detach().to(at::kCPU, at::kFloat).contiguous();
      const io::Histogram histogram = io::histogram_of(
          {values.const_data_ptr<float>(), static_cast<std::size_t>(values.numel())});
      for (const auto& logger : context.loggers) logger->log_histogram(name, histogram, step);
    };
    for (const auto& item : context.task.model().named_parameters()) {
      log("weights/" + item.key(), item.value());
      if (item.value().grad().defined())
        log("gradients/" + item.key(), item.value().grad().to(at::kFloat) * factor);
    }
  }
  Options options_;
  Metrics norms_;  // until the step is done
};
CYTRA_REGISTER(Callback, GradientLogging, "GradientLogging", "GradientLoggingCallback");

}  // namespace
}  // namespace cytra::training
