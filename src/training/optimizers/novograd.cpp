// NovoGrad: gradients divided by the norm of their layer. Source: Ginsburg et al. 2019;
// monai.optimizers.Novograd.
#include <map>

#include <ATen/ATen.h>

#include "base/error.h"
#include "config/registry.h"
#include "training/optimizer.h"

namespace cytra::training {
namespace {

class Novograd final : public Optimizer {
 public:
  struct Options : OptimizerOptions {
    double eps = 1e-8;
    std::vector<double> betas{0.9, 0.98};
    bool grad_averaging = false, amsgrad = false;
    void visit(auto& v) {
      OptimizerOptions::visit(v);
      v("betas", betas, "decay of the means of gradient and squared norm, two numbers", 0, 1);
      v("eps", eps, "added to the denominator", 0, 1);
      v("grad_averaging", grad_averaging, "weigh the gradient by 1 - betas[0]");
      v("amsgrad", amsgrad, "divide by the largest mean of the squared norm so far");
    }
    void check() const {
      OptimizerOptions::check(/*has_fused=*/false);
      if (betas.size() != 2) throw ConfigError("betas: expected two numbers");
    }
  };
  explicit Novograd(const Options& options)
      : Optimizer(
            options,
            options.amsgrad
                ? std::vector<Slot>{{"exp_avg"}, {"exp_avg_sq", true}, {"max_exp_avg_sq", true}}
                : std::vector<Slot>{{"exp_avg"}, {"exp_avg_sq", true}},
            Count::none,
            /*has_fused=*/false),
        options_(options) {}

  const char* name() const override { return "Novograd"; }
  double momentum() const override { return options_.betas[0]; }

 private:
  void update(Lists& lists, const Update& update) override {
    const double beta1 = update.momentum.value_or(options_.betas[0]), beta2 = options_.betas[1];
    const std::vector<at::Tensor>& means = lists.slots[0];
    const at::Tensor norms = at::stack(at::_foreach_norm(lists.gradients)).square();
    at::Tensor squares = joined(lists.slots[1]);
    const bool is_joined = squares.defined();
    if (!is_joined) squares = at::stack(lists.slots[1]);
    // The first norm is taken as it is.
    const at::Tensor mean = squares * beta2 + norms * (1 - beta2);
    at::where_out(squares, squares == 0, norms, mean);
    if (!is_joined) at::_foreach_copy_(lists.slots[1], squares.unbind());
    if (options_.amsgrad) {
      at::_foreach_maximum_(lists.slots[2], lists.slots[1]);
      squares = is_joined ? joined(lists.slots[2]) : at::stack(lists.slots[2]);
    }
    divide(lists.gradients, squares.sqrt() + options_.eps);
    if (update.weight_decay != 0)
      at::_foreach_add_(lists.gradients, lists.parameters, update.weight_decay);
    if (options_.grad_averaging) at::_foreach_mul_(lists.gradients, 1 - beta1);
    at::_foreach_mul_(means, beta1);
    at::_foreach_add_(means, lists.gradients);
    at::_foreach_add_(lists.parameters, means, -update.lr);
  }

  /// Divides each gradient by its number in `by`, on a GPU in three kernels for all of them: torch
  /// would start one for each, because the divisor is a number on the device.
  void divide(std::vector<at::Tensor>& gradients, const at::Tensor& by) {
    if (by.is_cpu() || gradients.size() == 1) {
      gradients = at::_foreach_div(gradients, by.unbind());
      return;
    }
    std::vector<at::Tensor> flat;  // in the order of memory, which channels last has, too
    std::vector<int64_t> sizes;
    for (at::Tensor& gradient : gradients) {
      if (!gradient.is_non_overlapping_and_dense()) gradient = gradient.contiguous();
      flat.push_back(gradient.as_strided({gradient.numel()}, {1}));
      sizes.push_back(gradient.numel());
    }
    if (owners_.size() > kMostOwners) owners_.clear();
    at::Tensor& owners = owners_[sizes];
    if (!owners.defined()) {
      std::vector<at::Tensor> numbers;
      for (const int64_t size : sizes) {
        const auto number = std::ssize(numbers);
        numbers.push_back(at::full({size}, number, by.options().dtype(at::kInt)));
      }
      owners = at::cat(numbers);
    }
    const auto divided = at::cat(flat).div_(by.index_select(0, owners)).split_with_sizes(sizes);
    for (std::size_t i = 0; i < sizes.size(); ++i)
      gradients[i] = divided[i].as_strided(gradients[i].sizes(), gradients[i].strides());
  }

  Options options_;
  static constexpr std::size_t kMostOwners = 8;  // groups of parameters
  /// The number of the gradient that each value belongs to, by the sizes of the gradients.
  std::map<std::vector<int64_t>, at::Tensor> owners_;
};
CYTRA_REGISTER(Optimizer, Novograd, "Novograd");

}  // namespace
}  // namespace cytra::training
