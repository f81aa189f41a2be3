// The batch norm of several processes, by ATen's operations.
#include "ops/norm/synced_batch_norm.h"

#include <vector>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include "ops/norm/norm.h"

namespace cytra::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

std::vector<int64_t> all_but_channels(const at::Tensor& x) {
  std::vector<int64_t> dims{0};
  for (int64_t d = 2; d < x.dim(); ++d) dims.push_back(d);
  return dims;
}

at::ScalarType type_of_sums(const at::Tensor& x) {
  return x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

/// (C) -> (1,C,1,...)
at::Tensor beside(const at::Tensor& of_channels, const at::Tensor& x) {
  std::vector<int64_t> shape(static_cast<std::size_t>(x.dim()), 1);
  shape[1] = -1;
  return of_channels.to(type_of_sums(x)).view(shape);
}

/// The mean and population variance over all processes, (C) float64, and the number of values.
struct BatchMoments {
  at::Tensor mean, variance;
  double count;
};
BatchMoments batch_moments_of_all(const at::Tensor& x, const SumOverProcesses& sum) {
  const int64_t channels = x.size(1);
  const auto own = static_cast<double>(x.numel() / channels);
  const auto [variance, mean] = at::var_mean(x.to(type_of_sums(x)), all_but_channels(x), false);
  const at::Tensor m = mean.to(at::kDouble), v = variance.to(at::kDouble);
  const at::Tensor sums = at::cat({m * own, (v + m * m) * own, at::full({1}, own, m.options())});
  sum(sums);
  const auto count = sums[2 * channels].item<double>();
  const at::Tensor all_mean = sums.narrow(0, 0, channels) / count;
  return {all_mean,
          (sums.narrow(0, channels, channels) / count - all_mean * all_mean).clamp_min(0),
          count};
}

struct SyncedBatchNorm : torch::autograd::Function<SyncedBatchNorm> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& x,
                            const std::optional<at::Tensor>& weight,
                            const std::optional<at::Tensor>& bias,
                            const BatchMoments& moments,
                            double eps,
                            const SumOverProcesses& sum) {
    const at::Tensor rstd = (moments.variance + eps).rsqrt();
    at::Tensor y = (x.to(type_of_sums(x)) - beside(moments.mean, x)).mul_(beside(rstd, x));
    if (weight) y = at::addcmul(beside(*bias, x), y, beside(*weight, x));
    context->save_for_backward({x, weight.value_or(at::Tensor()), moments.mean, rstd});
    context->saved_data["count"] = moments.count;
    // An object that IValue can't hold is kept alive as long as the graph.
    context->saved_data["sum"] = c10::IValue::make_capsule(c10::make_intrusive<Held>(sum));
    return y.to(x.scalar_type());
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    if (at::GradMode::is_enabled()) throw std::logic_error("a norm has no second derivative");
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1], &mean = saved[2], &rstd = saved[3];
    const auto count = context->saved_data["count"].toDouble();
    const auto held = context->saved_data["sum"].toCapsule();
    const at::Tensor grad = grads.at(0).to(type_of_sums(x));
    const at::Tensor centered = x.to(type_of_sums(x)) - beside(mean, x);
    const std::vector<int64_t> dims = all_but_channels(x);
    const at::Tensor dbias = grad.sum(dims).to(at::kDouble);
    const at::Tensor dweight = (grad * centered).sum(dims).to(at::kDouble) * rstd;
    const at::Tensor sums = at::cat({dbias, dweight});
    static_cast<const Held&>(*held).sum(sums);
    const int64_t channels = x.size(1);
    const at::Tensor scale = weight.defined() ? weight.to(at::kDouble) * rstd : rstd;
    const at::Tensor offset = -scale * sums.narrow(0, 0, channels) / count;
    const at::Tensor slant = -scale * rstd * sums.narrow(0, channels, channels) / count;
    at::Tensor dx = at::addcmul(beside(offset, x), grad, beside(scale, x));
    dx.addcmul_(centered, beside(slant, x));
    if (!weight.defined()) return {dx.to(x.scalar_type()), {}, {}, {}, {}, {}};
    const at::ScalarType type =
        weight.scalar_type();  // of this process alone: these are averaged later
    return {dx.to(x.scalar_type()), dweight.to(type), dbias.to(type), {}, {}, {}};
  }

 private:
  struct Held : torch::CustomClassHolder {
    explicit Held(SumOverProcesses sum) : sum(std::move(sum)) {}
    SumOverProcesses sum;
  };
};

}  // namespace

at::Tensor synced_batch_norm(const at::Tensor& x,
                             const at::Tensor& weight,
                             const at::Tensor& bias,
                             const RunningStatistics& running,
                             double eps,
                             const SumOverProcesses& sum,
                             const Activation& activation) {
  BatchMoments moments;
  {
    const at::NoGradGuard no_grad;
    moments = batch_moments_of_all(x, sum);
    expect_several(x, static_cast<int64_t>(moments.count), "batch");
    if (running.mean.defined()) {
      const double momentum = running.momentum;
      running.mean.mul_(1 - momentum).add_(moments.mean, momentum);
      // What is remembered is the unbiased variance.
      running.variance.mul_(1 - momentum)
          .add_(moments.variance, momentum * moments.count / (moments.count - 1));
    }
  }
  const auto optional_of = [](const at::Tensor& tensor) {
    return tensor.defined() ? std::optional(tensor) : std::nullopt;
  };
  return activate(
      SyncedBatchNorm::apply(x, optional_of(weight), optional_of(bias), moments, eps, sum),
      activation);
}

}  // namespace cytra::ops
